"""Requests in one isolate: answers, errors, concurrency, ends."""

import asyncio
import itertools

import pytest

from belem.isolates import (
    CpuLimitExceeded,
    Event,
    GuestHung,
    GuestThrew,
    Host,
    IsolateBusy,
    IsolateLost,
    Limits,
    LogLine,
    MemoryLimitExceeded,
)
from belem.sdk.ops import Answer, Call
from tests.isolates.conftest import Spawn

_FLOOD = """
  export const flood = () => { for (let n = 0; n < 20_000; n++) console.log(String(n)); return 1; };
"""


async def test_dispatch_returns_what_the_handler_answered(spawn: Spawn) -> None:
    isolate = await spawn("export const greet = (head) => `hello ${head}`;")

    reply = await isolate.dispatch(Event("greet", "world"))

    assert (reply.head, reply.body) == ("hello world", None)
    await reply.settled()
    assert isolate.in_flight == 0


async def test_a_small_body_arrives_whole_and_comes_back(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const echo = (head, body, id) => { host.send(3, id, head, body); host.send(8, id); };
    """)

    reply = await isolate.dispatch(Event("echo", "é", b"\0\1\2"))

    assert (reply.head, reply.body) == ("é", b"\0\1\2")


async def test_a_handler_that_throws_fails_its_request_alone(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const bad = () => { throw new TypeError("no"); };
        export const good = () => "fine";
    """)

    with pytest.raises(GuestThrew) as caught:
        await isolate.dispatch(Event("bad"))

    assert (caught.value.name, caught.value.text) == ("TypeError", "no")
    assert "worker.js" in caught.value.stack
    assert (await isolate.dispatch(Event("good"))).head == "fine"


async def test_many_requests_share_one_isolate(spawn: Spawn) -> None:
    isolate = await spawn("export const work = async (head) => { await sleep(5); return head; };")

    replies = await asyncio.gather(
        *(isolate.dispatch(Event("work", str(number))) for number in range(300))
    )

    assert [reply.head for reply in replies] == [str(number) for number in range(300)]


async def test_more_requests_than_the_limit_are_refused(spawn: Spawn) -> None:
    isolate = await spawn("export const wait = () => sleep(1000);", max_requests=1)
    first = asyncio.ensure_future(isolate.dispatch(Event("wait")))
    await asyncio.sleep(0)

    with pytest.raises(IsolateBusy, match="limit is 1"):
        await isolate.dispatch(Event("wait"))

    await isolate.aclose()
    with pytest.raises(IsolateLost):
        await first


@pytest.mark.parametrize(
    "loop",
    ["for (;;);", "for (;;) await 0;", "/(x+x+)+y/.test('x'.repeat(64));"],
    ids=["sync", "microtasks", "regex"],
)
async def test_an_endless_loop_ends_its_isolate_and_no_other(spawn: Spawn, loop: str) -> None:
    source = f"export const spin = async () => {{ {loop} }}; export const hi = () => 'hi';"
    isolate = await spawn(source, cpu_ms=60)
    neighbour = await spawn(source)

    with pytest.raises(CpuLimitExceeded) as caught:
        await isolate.dispatch(Event("spin"))

    assert caught.value.limit_ms == 60
    assert isinstance(isolate.dead, CpuLimitExceeded)
    assert (await neighbour.dispatch(Event("hi"))).head == "hi"
    with pytest.raises(IsolateLost) as late:
        await isolate.dispatch(Event("hi"))
    assert not late.value.delivered


async def test_others_are_answered_while_one_isolate_computes(spawn: Spawn) -> None:
    source = "export const spin = () => { for (;;); }; export const hi = () => 'hi';"
    busy = await spawn(source, cpu_ms=300)
    quick = await spawn(source)
    spinning = asyncio.ensure_future(busy.dispatch(Event("spin")))

    answers = 0
    while not spinning.done():
        answers += (await quick.dispatch(Event("hi"))).head == "hi"

    assert answers > 20
    with pytest.raises(CpuLimitExceeded):
        await spinning


async def test_cpu_time_adds_up_over_the_steps_of_a_request(spawn: Spawn) -> None:
    isolate = await spawn(
        """
        export const burn = async () => {
          for (;;) { for (let i = 0; i < 200000; i++); await sleep(0); }
        };
        """,
        cpu_ms=80,
    )

    with pytest.raises(CpuLimitExceeded):
        await isolate.dispatch(Event("burn"))


async def test_closing_an_isolate_that_computes_ends_it_at_once(spawn: Spawn) -> None:
    isolate = await spawn("export const spin = () => { for (;;); };")
    spinning = asyncio.ensure_future(isolate.dispatch(Event("spin")))
    for _ in range(3):  # its first slice is over, and a thread has the rest
        await asyncio.sleep(0)

    await isolate.aclose()

    with pytest.raises(IsolateLost, match="closed"):
        await spinning
    await isolate.aclose()


async def test_a_memory_bomb_meets_an_error_that_the_worker_can_catch(spawn: Spawn) -> None:
    isolate = await spawn(
        """
        export const bomb = () => {
          const kept = [];
          try { for (;;) kept.push(new Uint8Array(1 << 20)); }
          catch (error) { return error.message; }
        };
        export const hi = () => "hi";
        """,
        memory_bytes=32 << 20,
    )

    reply = await isolate.dispatch(Event("bomb"))

    assert "memory" in reply.head
    assert (await isolate.dispatch(Event("hi"))).head == "hi"


async def test_deep_recursion_is_an_error_that_the_worker_can_catch(spawn: Spawn) -> None:
    isolate = await spawn("""
        const deep = (n) => 1 + deep(n + 1);
        export const recurse = () => { try { deep(0) } catch (error) { return error.name; } };
        export const parse = () => {
          try { JSON.parse("[".repeat(1e6)); } catch (error) { return error.name; }
        };
        export const nest = () => {
          try { new Function("(".repeat(1e5)); } catch (error) { return "caught"; }
        };
        export const proxies = () => {
          let p = {};
          for (let i = 0; i < 1e5; i++) p = new Proxy(p, {});
          try { return String(p.x); } catch (error) { return error.name; }
        };
    """)

    heads = [
        (await isolate.dispatch(Event(name))).head
        for name in ("recurse", "parse", "nest", "proxies")
    ]

    assert heads[0] == "RangeError"
    assert isolate.dead is None


async def test_a_request_that_nothing_can_wake_is_hung(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const hang = () => new Promise(() => {});
        export const hi = () => "hi";
    """)

    with pytest.raises(GuestHung, match="would never generate a response"):
        await isolate.dispatch(Event("hang"))

    assert isolate.in_flight == 0
    assert (await isolate.dispatch(Event("hi"))).head == "hi"


async def test_a_request_that_waits_for_a_timer_is_not_hung(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const hang = () => new Promise(() => {});
        export const slow = async () => { await sleep(30); return "slow"; };
    """)
    slow = asyncio.ensure_future(isolate.dispatch(Event("slow")))

    with pytest.raises(GuestHung):
        await isolate.dispatch(Event("hang"))

    assert slow.done()
    assert slow.result().head == "slow"


async def test_work_after_the_reply_keeps_the_request_in_flight(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const later = (head, body, id) => {
          host.send(3, id, "first");
          sleep(10).then(() => { console.log("done", id); host.send(8, id); });
        };
    """)

    reply = await isolate.dispatch(Event("later"))

    assert (reply.head, reply.is_settled, isolate.in_flight) == ("first", False, 1)
    await reply.settled()
    assert isolate.in_flight == 0


async def test_work_after_the_reply_is_cut_off_with_a_warning(
    spawn: Spawn, lines: list[LogLine]
) -> None:
    isolate = await spawn(
        "export const later = (head, body, id) => { host.send(3, id, ''); sleep(60000); };",
        wait_until_seconds=0.01,
    )

    reply = await isolate.dispatch(Event("later"))
    await reply.settled()

    assert isolate.in_flight == 0
    assert [line.level for line in lines] == ["warn"]
    assert "waitUntil() tasks did not complete" in lines[0].text
    assert isolate.pending_ops == 0


async def test_a_wait_until_that_can_never_end_is_settled_at_once(
    spawn: Spawn, lines: list[LogLine]
) -> None:
    isolate = await spawn("export const later = (head, body, id) => { host.send(3, id, ''); };")

    reply = await isolate.dispatch(Event("later"))
    await reply.settled()

    assert "can never finish" in lines[0].text


async def test_a_cancelled_dispatch_tells_the_guest(spawn: Spawn) -> None:
    isolate = await spawn("""
        const seen = [];
        export const wait = () => sleep(60000);
        export const record = (kind, id) => { seen.push(`${kind}:${id}`); host.send(8, id); };
        export const report = () => seen.join();
    """)
    waiting = asyncio.ensure_future(isolate.dispatch(Event("wait")))
    await asyncio.sleep(0.01)

    waiting.cancel()
    await asyncio.wait([waiting])

    assert (await isolate.dispatch(Event("report"))).head == "7:1"
    assert waiting.cancelled()
    assert isolate.in_flight == 0


async def test_closing_a_reply_cancels_it_once(spawn: Spawn) -> None:
    isolate = await spawn("""
        const seen = [];
        export const begin = (head, body, id) => { host.send(3, id, "", 1); };
        export const record = (kind, id) => { seen.push(`${kind}:${id}`); };
        export const report = () => seen.join();
    """)
    reply = await isolate.dispatch(Event("begin"))

    await reply.aclose()
    await reply.aclose()

    assert (await isolate.dispatch(Event("report"))).head == "7:1"
    await isolate.aclose()


async def test_logs_of_a_request_are_bounded(spawn: Spawn, lines: list[LogLine]) -> None:
    isolate = await spawn(
        "export const shout = (head, body, id) => {"
        "  for (let i = 0; i < 100; i++) console.log('x'.repeat(1000), id); return ''; };",
        log_bytes=4096,
    )

    await isolate.dispatch(Event("shout"))

    assert sum(len(line.text) for line in lines) < 5000
    assert "Log size limit exceeded" in lines[-1].text
    assert {line.request for line in lines} == {1}


async def test_a_flood_of_records_is_heard_a_part_at_a_time(
    spawn: Spawn, lines: list[LogLine]
) -> None:
    isolate = await spawn(
        _FLOOD,
        log_bytes=1 << 30,
    )
    flood = asyncio.create_task(isolate.dispatch(Event("flood")))
    heard = [0]

    while heard[-1] < 20_000 and not flood.done():
        await asyncio.sleep(0)
        heard.append(len(lines))

    assert max(late - early for early, late in itertools.pairwise(heard)) <= 1_000
    assert [line.text for line in lines] == [str(n) for n in range(20_000)]
    assert (await flood).head == "1"


async def test_an_isolate_may_be_closed_while_its_flood_is_heard(
    spawn: Spawn, lines: list[LogLine]
) -> None:
    isolate = await spawn(
        _FLOOD,
        log_bytes=1 << 30,
    )
    flood = asyncio.create_task(isolate.dispatch(Event("flood")))
    while not (lines or flood.done()):  # noqa: ASYNC110  # it is the loop's turns that count
        await asyncio.sleep(0)

    await isolate.aclose()

    with pytest.raises(IsolateLost):
        await flood
    assert len(lines) < 20_000


async def test_cpu_time_is_metered(spawn: Spawn) -> None:
    isolate = await spawn(
        "export const work = () => { for (let i = 0; i < 1e6; i++); return 'done'; };"
    )

    reply = await isolate.dispatch(Event("work"))

    assert 0.5 < reply.cpu_ms <= isolate.cpu_ms


async def test_two_isolates_of_one_image_share_neither_state_nor_randomness(spawn: Spawn) -> None:
    source = """
        let count = 0;
        export const bump = () => ++count;
        export const random = () =>
          `${Math.random()} ${host.random(new Uint8Array(16)).toString()}`;
    """
    first, second = await spawn(source), await spawn(source)

    counts = [(await isolate.dispatch(Event("bump"))).head for isolate in (first, first, second)]
    draws = [(await isolate.dispatch(Event("random"))).head for isolate in (first, second)]

    assert first.image is second.image
    assert counts == ["1", "2", "1"]
    assert draws[0].split()[0] != draws[1].split()[0]
    assert draws[0].split()[1] != draws[1].split()[1]


async def test_an_answer_that_does_not_fit_rejects_its_op_alone(spawn: Spawn) -> None:
    async def large(call: Call) -> Answer:
        return Answer(body=bytes(40 << 20))

    isolate = await spawn(
        """
        export const get = async () => {
          try { await host.op(["large", "get", []]); } catch (error) { return error.message; }
        };
        """,
        {"large": large},
        memory_bytes=16 << 20,
    )

    reply = await isolate.dispatch(Event("get"))

    assert "does not fit" in reply.head
    assert isolate.dead is None


async def test_an_image_larger_than_the_limit_is_not_spawned(
    host: Host, spawn: Spawn, lines: list[LogLine]
) -> None:
    isolate = await spawn("export const hi = () => 'hi';")

    with pytest.raises(MemoryLimitExceeded):
        host.spawn(isolate.image, {}, Limits(memory_bytes=1 << 16), lines.append)


async def test_an_enormous_error_ends_its_request_and_not_the_isolate(spawn: Spawn) -> None:
    isolate = await spawn(
        """
        export const huge = () => { throw new Error("x".repeat(3e6)); };
        export const small = () => "fine";
        """
    )

    with pytest.raises(GuestThrew, match="the limit is 1048576"):
        await isolate.dispatch(Event("huge"))

    assert (await isolate.dispatch(Event("small"))).head == "fine"
