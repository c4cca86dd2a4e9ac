import pytest

from belem.bindings.aiokv import MemoryStore
from tests.bindings.aiokv.conformance import NOW, Clock, StoreConformance


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> MemoryStore:
    return MemoryStore(clock=clock)


class TestMemoryStore(StoreConformance):
    pass


async def test_writes_clear_away_what_expired(store: MemoryStore, clock: Clock) -> None:
    for number in range(40):
        await store.put("ns", f"k{number}", b"", expiration=NOW + 60)
    clock.now = NOW + 60

    for _ in range(3):
        await store.delete("ns", "nothing")

    clock.now = NOW  # what is left would be visible again
    assert (await store.list("ns")).keys == ()


async def test_clearing_spares_a_key_put_again(store: MemoryStore, clock: Clock) -> None:
    await store.put("ns", "key", b"old", expiration=NOW + 60)
    await store.put("ns", "key", b"new", expiration=NOW + 600)
    clock.now = NOW + 61

    await store.delete("ns", "nothing")

    assert (await store.list("ns")).keys[0].name == "key"


async def test_putting_one_key_for_ever_does_not_grow_the_store(store: MemoryStore) -> None:
    for number in range(1000):
        await store.put("ns", "key", b"", expiration=NOW + 600 + number)

    assert len(store._expirations) < 100  # pyright: ignore[reportPrivateUsage] # no public view
