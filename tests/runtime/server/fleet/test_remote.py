"""A store over a channel keeps to what every store keeps to; a relay gives nothing away."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from belem.bindings.aiokv import Entry, InvalidArgument, MemoryStore, StoreFailed
from belem.runtime.control import Binding, SQLiteVersionStore, Upload
from belem.runtime.server.fleet.channel import Answer, Call, Channel, open_channel
from belem.runtime.server.fleet.errors import ChannelBroken, HostLost
from belem.runtime.server.fleet.relay import TenantRelay
from belem.runtime.server.fleet.remote import ChannelStore, ChannelVersions
from belem.runtime.server.observability import Invocations
from tests.bindings.aiokv.conformance import Clock, StoreConformance

NAMESPACES = ("ns", "one", "two", "a", "b", "other")


async def _refuse(call: Call) -> Answer:
    raise ChannelBroken(f"{call.method} is not for this side.")


def upload(worker: str, *ids: str | None) -> Upload:
    bindings = tuple(Binding(f"KV{number}", "kv_namespace", id_) for number, id_ in enumerate(ids))
    return Upload(worker, "a.js", {"a.js": f"// {worker}"}, bindings)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(clock: Clock) -> MemoryStore:
    return MemoryStore(clock=clock)


@pytest.fixture
async def versions(tmp_path: Path) -> AsyncIterator[SQLiteVersionStore]:
    store = SQLiteVersionStore(tmp_path)
    yield store
    await store.aclose()


@pytest.fixture
async def channel(versions: SQLiteVersionStore, kept: MemoryStore) -> AsyncIterator[Channel]:
    relay = TenantRelay("hello", versions, kept, Invocations())
    ours, theirs = socket.socketpair()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(open_channel(theirs, relay.handle))
        yield await stack.enter_async_context(open_channel(ours, _refuse))


@pytest.fixture
async def store(channel: Channel, versions: SQLiteVersionStore) -> ChannelStore:
    await versions.deploy(upload("hello", *NAMESPACES))
    await ChannelVersions(channel).active("hello")
    return ChannelStore(channel)


class TestChannelStore(StoreConformance):
    pass


async def test_only_the_processs_own_version_is_given(
    channel: Channel, versions: SQLiteVersionStore
) -> None:
    await versions.deploy(upload("secretive"))
    nothing = await ChannelVersions(channel).active("hello")
    await versions.deploy(upload("hello"))

    asked_for_another = await ChannelVersions(channel).active("secretive")

    assert nothing is None
    assert asked_for_another is not None
    assert asked_for_another.upload.worker == "hello"


async def test_only_the_namespaces_of_its_versions_are_reached(
    channel: Channel, versions: SQLiteVersionStore, kept: MemoryStore
) -> None:
    await kept.put("hello/KV0", "key", b"own")
    await kept.put("shared", "key", b"shared")
    await kept.put("secretive/KV0", "key", b"secret")
    store = ChannelStore(channel)
    with pytest.raises(InvalidArgument):  # no version was given yet
        await store.get("hello/KV0", "key")
    await versions.deploy(upload("hello", None, "shared"))
    await ChannelVersions(channel).active("hello")

    own = await store.get("hello/KV0", "key")
    shared = await store.get("shared", "key")

    assert (own, shared) == (Entry(b"own"), Entry(b"shared"))
    for reach in (
        store.get("secretive/KV0", "key"),
        store.put("secretive/KV0", "key", b""),
        store.delete("secretive/KV0", "key"),
        store.list("secretive/KV0"),
    ):
        with pytest.raises(InvalidArgument, match=r"Namespace 'secretive/KV0' is not the worker's"):
            await reach
    assert await kept.get("secretive/KV0", "key") == Entry(b"secret")


async def test_a_front_that_is_gone_is_a_store_that_failed(
    channel: Channel, store: ChannelStore
) -> None:
    channel.closed.set()

    with pytest.raises(StoreFailed):
        await store.get("ns", "key")


@pytest.mark.parametrize(
    ("method", "values"),
    [
        ("kv.get", {"namespace": "ns", "keys": "key", "limit_bytes": 1}),
        ("kv.get", {"namespace": "ns", "keys": ["key"]}),
        ("kv.put", {"namespace": "ns", "key": None}),
        ("kv.put", {"namespace": "ns", "key": "a", "expiration": "soon"}),
        ("kv.list", {"namespace": "ns", "prefix": "", "limit": True}),
        ("invocation", {"worker": "hello"}),
        ("deploy", {}),
    ],
)
async def test_calls_of_the_wrong_shape_are_refused(
    channel: Channel, store: ChannelStore, method: str, values: dict[str, str]
) -> None:
    with pytest.raises(Exception) as raised:
        await channel.call(method, values, timeout_seconds=5)

    assert not isinstance(raised.value, HostLost)
    assert await store.get("ns", "nothing") is None  # the channel goes on
