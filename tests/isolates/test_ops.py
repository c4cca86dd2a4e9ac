"""Host ops: dispatch, answers, rejections, timers, cancellation."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from belem.isolates import Capability, Event, Isolate
from belem.sdk.errors import UserError
from belem.sdk.ops import Answer, Call, Rejection
from tests.isolates.conftest import Spawn

TRY = """
    export const run = async (head) => {
      try {
        const [value, extra] = await host.op(JSON.parse(head));
        return JSON.stringify([value, extra === undefined ? null : Array.from(extra)]);
      } catch (error) {
        return `${error.name}|${error.message}|${error.code ?? ""}`;
      }
    };
"""


async def run(isolate: Isolate, request: str) -> str:
    return (await isolate.dispatch(Event("run", request))).head


async def test_an_op_reaches_its_capability_and_brings_back_a_value(spawn: Spawn) -> None:
    calls: list[Call] = []

    async def kv(call: Call) -> Answer:
        calls.append(call)
        return Answer({"got": ["é", 1.5, None, True]})

    isolate = await spawn(TRY, {"KV": kv})

    assert await run(isolate, '["KV","get",["key",{"type":"json"}]]') == (
        '[{"got":["é",1.5,null,true]},null]'
    )
    assert calls == [Call("get", ["key", {"type": "json"}], None)]


async def test_bytes_come_with_the_value(spawn: Spawn) -> None:
    async def raw(call: Call) -> Answer:
        return Answer("meta", b"\1\2")

    isolate = await spawn(TRY, {"raw": raw})

    assert await run(isolate, '["raw","get",[]]') == '["meta",[1,2]]'


async def test_bytes_and_streams_go_with_a_call(spawn: Spawn) -> None:
    bodies: list[bytes] = []

    async def put(call: Call) -> Answer:
        assert call.body is not None
        if isinstance(call.body, bytes):
            bodies.append(call.body)
        else:
            bodies.append(b"".join([chunk async for chunk in call.body]))
        return Answer()

    isolate = await spawn(
        """
        export const go = async () => {
          await host.op(["put", "bytes", []], new Uint8Array([7, 8]));
          const done = host.op(["put", "stream", []], 5);
          host.send(4, 5, "one"); host.send(4, 5, "two"); host.send(5, 5);
          await done;
          return "ok";
        };
        """,
        {"put": put},
    )

    assert (await isolate.dispatch(Event("go"))).head == "ok"
    assert bodies == [b"\7\10", b"onetwo"]


async def test_a_streamed_answer_is_read_chunk_by_chunk(spawn: Spawn) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d" % number

    async def get(call: Call) -> Answer:
        return Answer("head", chunks())

    isolate = await spawn(
        """
        let request, text = "";
        export const go = async (head, body, id) => {
          request = id;
          const [value, stream] = await host.op(["get", "x", []]);
          text = `${value}:${stream}:`;
        };
        export const record = (kind, id, value) => {
          if (kind === 4) { text += host.utf8Decode(value); host.send(9, id, value.length); }
          if (kind === 5) { host.send(3, request, text); host.send(8, request); }
        };
        """,
        {"get": get},
    )

    assert (await isolate.dispatch(Event("go"))).head == "head:1:012"


async def test_rejections_carry_name_message_and_properties(spawn: Spawn) -> None:
    async def refuse(call: Call) -> Answer:
        raise Rejection("Key is too long", name="KvError", properties={"code": 414})

    isolate = await spawn(TRY, {"KV": refuse})

    assert await run(isolate, '["KV","get",[]]') == "KvError|Key is too long|414"


async def test_other_errors_of_ours_reach_the_guest_as_plain_errors(spawn: Spawn) -> None:
    async def refuse(call: Call) -> Answer:
        raise UserError("The value is 30 MiB; the limit is 25 MiB.")

    isolate = await spawn(TRY, {"KV": refuse})

    assert (
        await run(isolate, '["KV","put",[]]') == "Error|The value is 30 MiB; the limit is 25 MiB.|"
    )


@pytest.mark.parametrize("value", [object(), float("nan")], ids=["not json", "nan"])
async def test_a_broken_capability_tells_the_guest_nothing(
    spawn: Spawn, caplog: pytest.LogCaptureFixture, value: float
) -> None:
    async def broken(call: Call) -> Answer:
        return Answer(value)

    isolate = await spawn(TRY, {"KV": broken})

    with caplog.at_level(logging.ERROR):
        assert await run(isolate, '["KV","get",[]]') == "Error|internal error|"

    assert "isolate_op_failed" in caplog.text


async def test_an_unknown_capability_is_named(spawn: Spawn) -> None:
    isolate = await spawn(TRY)

    assert "There is no capability 'NOPE' here." in await run(isolate, '["NOPE","get",[]]')


async def test_arguments_over_the_limit_reject_their_op(spawn: Spawn) -> None:
    isolate = await spawn(TRY, op_json_bytes=100)

    assert "the limit is 100" in await run(isolate, '["KV","get",["%s"]]' % ("x" * 200))
    assert isolate.dead is None


async def test_more_ops_than_the_limit_are_rejected(spawn: Spawn) -> None:
    isolate = await spawn(
        """
        export const many = async () => {
          const results = await Promise.allSettled([sleep(1), sleep(1), sleep(1)]);
          return results.map((result) => result.reason?.message ?? "ok").join("|");
        };
        """,
        max_pending_ops=2,
    )

    reply = await isolate.dispatch(Event("many"))

    assert reply.head == "ok|ok|Too many operations are pending; the limit is 2."


async def test_answers_of_one_loop_turn_share_a_step(spawn: Spawn) -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> Answer:
        await gate.wait()
        return Answer()

    isolate = await spawn(
        """
        export const many = async () => {
          const ops = Array.from({ length: 50 }, () => host.op(["wait", "x", []]));
          await Promise.all(ops);
          return "done";
        };
        """,
        {"wait": wait},
    )
    request = asyncio.ensure_future(isolate.dispatch(Event("many")))
    for _ in range(5):  # all ops have begun to wait
        await asyncio.sleep(0)
    assert (isolate.steps, isolate.pending_ops) == (1, 50)

    gate.set()

    assert (await request).head == "done"
    assert isolate.steps == 2


async def test_a_cancelled_op_cancels_its_task_and_rejects(spawn: Spawn) -> None:
    cancelled: list[str] = []

    async def slow(call: Call) -> Answer:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(call.method)
            raise
        return Answer()

    isolate = await spawn(
        """
        export const go = async () => {
          const op = host.op(["slow", "x", []]);
          const id = host.lastOp();
          await sleep(1);
          host.send(11, id);
          try { await op; } catch (error) { return error.name; }
        };
        """,
        {"slow": slow},
    )

    assert (await isolate.dispatch(Event("go"))).head == "AbortError"
    assert cancelled == ["x"]


async def test_ops_end_with_the_last_request(spawn: Spawn) -> None:
    cancelled = asyncio.Event()

    async def slow(call: Call) -> Answer:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()
        return Answer()

    isolate = await spawn(
        'export const go = () => { host.op(["slow", "x", []]); return ""; };', {"slow": slow}
    )

    reply = await isolate.dispatch(Event("go"))
    await reply.settled()
    await cancelled.wait()

    assert isolate.pending_ops == 0


async def test_timers_fire_in_order_and_can_be_cleared(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const go = async () => {
          const seen = [];
          const long = sleep(60000).catch((error) => seen.push(error.name));
          host.send(11, host.lastOp());
          await Promise.all([20, 1, 10].map((ms) => sleep(ms).then(() => seen.push(ms))));
          await long;
          return seen.join();
        };
    """)

    assert (await isolate.dispatch(Event("go"))).head == "AbortError,1,10,20"


async def test_what_pending_ops_hold_is_bounded_and_given_back(spawn: Spawn) -> None:
    calls: list[Call] = []
    both = asyncio.Event()

    async def slow(call: Call) -> Answer:
        calls.append(call)
        if len(calls) == 2:
            both.set()
        await both.wait()
        return Answer("done")

    isolate = await spawn(
        """
        export const run = async () => {
          const ops = [1, 2, 3].map(() => host.op(["slow", "put", []], new Uint8Array(600)));
          return (await Promise.allSettled(ops)).map((it) => it.value?.[0] ?? it.reason.message)
            .join("|");
        };
        """,
        {"slow": slow},
        pending_op_bytes=1_500,
    )

    assert (await run(isolate, "")).startswith("done|done|The pending operations hold ")
    assert (await run(isolate, "")).startswith("done|done|The pending operations hold ")


async def test_answers_wait_up_to_what_the_guest_could_hold(spawn: Spawn) -> None:
    async def get(call: Call) -> Answer:
        return Answer("got", bytes(40 << 20))

    isolate = await spawn(
        """
        export const run = async () => {
          const ops = [1, 2, 3].map(() => host.op(["kv", "get", []]).then(([value]) => value));
          return (await Promise.allSettled(ops)).map((it) => it.value ?? it.reason.name).join("|");
        };
        """,
        {"kv": get},
        memory_bytes=100 << 20,
    )

    assert await run(isolate, "") == "got|got|RangeError"


async def test_six_fetches_of_a_request_wait_for_their_answers_at_a_time(spawn: Spawn) -> None:
    begun = asyncio.Semaphore(0)
    release = asyncio.Event()
    most = 0
    now = 0

    async def fetch(_: Call) -> Answer:
        nonlocal now, most
        now += 1
        most = max(most, now)
        begun.release()
        await release.wait()
        now -= 1
        return Answer("answered")

    isolate = await spawn(
        """
        export const ask = async () => {
          const asked = Array.from({ length: 20 }, () => host.op(["fetch", "fetch", []]));
          return (await Promise.all(asked)).length;
        };
        """,
        {"fetch": fetch},
    )
    asking = [asyncio.create_task(isolate.dispatch(Event("ask")))]
    for _ in range(6):
        await begun.acquire()
    asking.append(asyncio.create_task(isolate.dispatch(Event("ask"))))
    for _ in range(6):  # a neighbour has six of its own
        await begun.acquire()
    release.set()

    replies = await asyncio.gather(*asking)

    assert [reply.head for reply in replies] == ["20", "20"]
    assert most == 12


async def test_fetches_that_wait_for_their_turn_can_be_cancelled(spawn: Spawn) -> None:
    begun: list[str] = []
    release = asyncio.Event()

    async def fetch(call: Call) -> Answer:
        begun.append(call.method)
        await release.wait()
        return Answer()

    isolate = await spawn(
        """
        export const ask = async (head, body, id) => {
          const first = host.op(["fetch", "first", []]);
          const waits = host.op(["fetch", "waits", []]);
          host.send(11, host.lastOp());
          const last = host.op(["fetch", "last", []]);
          const failed = await waits.catch((error) => error.name);
          await host.op(["release", "it", []]);
          await Promise.all([first, last]);
          return failed;
        };
        """,
        {"fetch": fetch, "release": _releases(release)},
        connections=1,
    )

    assert (await isolate.dispatch(Event("ask"))).head == "AbortError"
    assert begun == ["first", "last"]


def _releases(event: asyncio.Event) -> Capability:
    async def release(_: Call) -> Answer:
        event.set()
        return Answer()

    return release


async def test_no_op_is_pending_for_ever_but_timers_are(spawn: Spawn) -> None:
    cancelled = asyncio.Event()

    async def stuck(_: Call) -> Answer:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()
        return Answer()

    isolate = await spawn(
        TRY
        + """
        export const slow = async () => {
          const timer = sleep(120);
          const failed = await host.op(["stuck", "get", []]).catch((error) => error.message);
          await timer;
          return failed;
        };
        """,
        {"stuck": stuck},
        op_seconds=0.05,
    )

    assert await run(isolate, '["stuck","get",[]]') == (
        "TimeoutError|The operation did not finish within 0.05 seconds.|"
    )
    assert cancelled.is_set()
    assert "did not finish" in (await isolate.dispatch(Event("slow"))).head
