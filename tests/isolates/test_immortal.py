"""What an image holds is not counted: pages stay shared, and nothing new is leaked."""

import asyncio

import pytest

from belem.isolates import Event, Host, Isolate
from belem.isolates.written import WrittenPages
from tests.isolates.conftest import Spawn

_PAGE = 4096
_MOST_PAGES = 20

_WORKER = """
  const kept = { list: [1, 2, 3], text: "kept".repeat(3), nested: { deep: [{}] } };
  let replaced = new Array(1000).fill({});
  export const look = () => {
    for (let n = 0; n < 100; n++) { const { list, text, nested } = kept; [list, text, nested]; }
    return `${kept.list.length} ${kept.text} ${kept.nested.deep.length}`;
  };
  export const replace = () => {
    for (let n = 0; n < 100; n++) {
      replaced = new Array(1000).fill(0).map((_, i) => ({ i }));
      replaced.push({ self: replaced }); // a cycle, for the collector
      kept.nested.deep = [{ replaced }];
    }
    return String(replaced.length);
  };
  export const append = () => {
    let text = kept.text;
    for (let n = 0; n < 9; n++) text += n;
    return text;
  };
"""


async def _ask(isolate: Isolate, name: str) -> str:
    return (await isolate.dispatch(Event(name))).head


async def test_values_of_the_image_stay_as_they_are(spawn: Spawn) -> None:
    isolate = await spawn(_WORKER)

    for _ in range(50):
        assert await _ask(isolate, "look") == "3 keptkeptkept 1"
        assert await _ask(isolate, "append") == "keptkeptkept012345678"


async def test_what_takes_their_place_is_freed(spawn: Spawn) -> None:
    isolate = await spawn(_WORKER)
    assert await _ask(isolate, "replace") == "1001"
    for _ in range(10):
        await _ask(isolate, "replace")
    before = isolate.memory_bytes

    for _ in range(50):  # some 200 MB in all
        await _ask(isolate, "replace")

    assert isolate.memory_bytes <= before + (4 << 20)


async def test_looking_at_them_writes_to_few_pages(host: Host, spawn: Spawn) -> None:
    written = WrittenPages()
    if not written.supported:
        pytest.skip("this system does not tell which pages were written")
    fewest = 1 << 30
    async with asyncio.timeout(30):
        while fewest > _MOST_PAGES:  # until the image has a memory of its own, without a patch
            isolate = await spawn(_WORKER)
            await _ask(isolate, "look")
            fewest = min(fewest, _pages(written, isolate))
            isolate.end()

    written.close()


def _pages(written: WrittenPages, isolate: Isolate) -> int:
    instance = isolate._instance  # pyright: ignore[reportPrivateUsage]
    spans = written.spans(instance.base, isolate.memory_bytes)
    return 1 << 30 if spans is None else sum(end - start for start, end in spans) // _PAGE
