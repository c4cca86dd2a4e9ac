"""What a request used: ops by kind, CPU, and the memory of its isolate."""

import pytest

from belem.isolates import CpuLimitExceeded, Event, Reply
from belem.isolates.usage import OTHER_OPS, Usage
from belem.sdk.ops import Answer, Call
from tests.isolates.conftest import Spawn


def test_kinds_of_ops_are_bounded_for_a_guest_makes_up_their_names() -> None:
    usage = Usage()
    for number in range(100):
        usage.count_op("made", f"up{number}")
    usage.count_op("made", "up0")
    usage.count_op("x" * 1000, "y")

    assert usage.ops["made.up0"] == 2
    assert usage.ops[OTHER_OPS] == 100 - 64 + 1
    assert len(usage.ops) == 65


def test_bindings_are_counted_by_their_type() -> None:
    usage = Usage()
    usage.count_op("kv:NOTES", "get")
    usage.count_op("kv:PAGES", "get")
    usage.count_op("fetch", "fetch")

    assert usage.ops == {"kv.get": 2, "fetch.fetch": 1}


async def test_an_isolate_notes_what_a_request_used(spawn: Spawn) -> None:
    async def store(_: Call) -> Answer:
        return Answer("value")

    isolate = await spawn(
        """
        export const work = async () => {
          for (let i = 0; i < 2; i++) await host.op(["NOTES", "get", []]);
          await sleep(1);
          return "done";
        };
        """,
        {"NOTES": store},
    )

    reply = await isolate.dispatch(Event("work"))
    await reply.settled()

    assert reply.usage.ops == {"NOTES.get": 2, "timer.sleep": 1}
    assert reply.cpu_seconds == reply.usage.cpu_seconds > 0
    assert reply.memory_bytes == isolate.memory_bytes > 0


async def test_the_memory_of_an_isolate_that_died_is_kept(spawn: Spawn) -> None:
    isolate = await spawn("export const loop = () => { for (;;); };", cpu_ms=20)
    memory_bytes = isolate.memory_bytes
    sent: list[Reply] = []

    with pytest.raises(CpuLimitExceeded):
        await isolate.dispatch(Event("loop", on_sent=sent.append))

    assert isolate.memory_bytes == 0
    assert sent[0].memory_bytes == memory_bytes > 0
    assert sent[0].usage.cpu_seconds >= 0.02
