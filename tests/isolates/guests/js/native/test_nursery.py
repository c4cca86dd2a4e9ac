"""What a restored guest writes to first lies together: pages that it writes to are its own."""

from tests.support.js_guest import JsGuest, record

PAGE_BYTES = 4096
SOURCE = """
const kept = new Array(20).fill(null);
H.onRecord(() => { for (let i = 0; i < 20; i++) kept[i] = "x".repeat(10 + i * 20); });
"""
MANY = "const all = []; for (let i = 0; i < 5000; i++) all.push('x'.repeat(i % 400)); return all;"


def pages_written(before: bytes, after: bytes) -> int:
    assert len(before) == len(after)
    starts = range(0, len(before), PAGE_BYTES)
    return sum(before[at : at + PAGE_BYTES] != after[at : at + PAGE_BYTES] for at in starts)


def test_a_first_request_writes_to_few_pages(guest: JsGuest) -> None:
    guest.collect()  # the base image's
    assert guest.main("main.js", main__js=SOURCE) == []
    guest.collect()  # the worker's
    before = guest.memory()

    guest.step(record(1, 1))

    assert pages_written(before, guest.memory()) <= 20  # 32 without


def test_blocks_outlast_the_nursery(guest: JsGuest) -> None:
    guest.collect()
    guest.main("main.js", main__js="")
    guest.collect()

    first = guest.evaluate(MANY)
    guest.collect()

    assert first == guest.evaluate(MANY) == ["x" * (i % 400) for i in range(5000)]
