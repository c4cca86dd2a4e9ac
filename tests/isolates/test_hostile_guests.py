"""Guests that lie: whatever is in memory or in an outbox, the host and its other isolates go on."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belem.isolates import (
    CpuLimitExceeded,
    Event,
    Host,
    Isolate,
    IsolateLost,
    Limits,
    LogLine,
    MemoryLimitExceeded,
    Program,
)
from belem.isolates.records import join, pack
from belem.sdk.abi import RECORD, ToHost, Type
from belem.sdk.errors import BelemError
from belem.sdk.ops import Answer, Call
from tests.isolates import wat

PROGRAM = Program(main="w", modules={"w": ""})


async def isolate_of(
    host: Host, folder: Path, content: bytes, limits: Limits | None = None
) -> Isolate:
    async def nothing(call: Call) -> Answer:
        return Answer()

    limits = limits or Limits()
    image = await host.build(wat.guest(folder, content), PROGRAM, limits)
    return host.spawn(image, {"any": nothing}, limits, lambda line: None)


async def death_by(host: Host, folder: Path, *records: bytes) -> IsolateLost:
    """Return what ends an isolate whose guest sends these records."""
    step, segment = wat.outbox_of(*records)
    isolate = await isolate_of(host, folder, wat.wasm(step, extra=segment))

    with pytest.raises(IsolateLost) as caught:
        await isolate.dispatch(Event("fetch"))

    assert isolate.dead is not None
    assert isolate.in_flight == 0
    return caught.value


@pytest.mark.parametrize(
    ("address", "length"),
    [
        (0xFFFF_FFF0, 64),
        (0xFFFF_FFFF, 0xFFFF_FFFF),
        (8 * 65536 - 8, 64),
        (8 * 65536, 1),
        (0, 60 << 20),
        (0, 0xFFFF_FFFF),
    ],
)
async def test_an_outbox_outside_the_memory_is_refused(
    host: Host, tmp_path: Path, address: int, length: int
) -> None:
    value = address << 32 | length
    signed = value - (1 << 64) if value >> 63 else value
    step = wat.AFTER_CONFIGURE + f"(i64.const {signed})"
    isolate = await isolate_of(host, tmp_path, wat.wasm(step))

    with pytest.raises(IsolateLost, match=r"trap.*outbox|trap.*address"):
        await isolate.dispatch(Event("fetch"))


@pytest.mark.parametrize(
    "outbox",
    [
        b"short",
        RECORD.pack(3, 1, 1, 0xFFFF_FFFF),
        RECORD.pack(3, 1, 1, 64) + b"too little",
        RECORD.pack(0, 0, 0, 0),
        RECORD.pack(13, 0, 0, 0),
        RECORD.pack(0xFFFF_FFFF, 0, 0, 0),
        RECORD.pack(3, 1, 0xFFFF_FFFF, 0),
        RECORD.pack(3, 1, Type.JSON, 0),
        RECORD.pack(12, 1, Type.TEXT, 0),
    ],
)
async def test_forged_records_are_a_breach(host: Host, tmp_path: Path, outbox: bytes) -> None:
    assert (await death_by(host, tmp_path, outbox)).reason == "protocol"


@pytest.mark.parametrize(
    "record",
    [
        pack(ToHost.REPLY, 2, Type.TEXT, b"an id never given out"),
        pack(ToHost.REPLY, 0, Type.TEXT, b"no request"),
        pack(ToHost.SETTLED, 99, Type.NONE),
        pack(ToHost.THROW, 1, Type.JSON, b"[]"),
        pack(ToHost.THROW, 1, Type.JSON, b"{"),
        pack(ToHost.REPLY, 1, Type.TEXT_AND_BYTES, b"\xff\xff\xff\xffx"),
        pack(ToHost.REPLY, 1, Type.TEXT_AND_BYTES, b"\0"),
        pack(ToHost.REPLY, 1, Type.TEXT_AND_STREAM, join(b"head", b"\0\0\0\0")),
        pack(ToHost.REPLY, 1, Type.TEXT_AND_STREAM, join(b"head", b"long id")),
        pack(ToHost.ACK, 1, Type.JSON, b"1"),
        pack(ToHost.STOP, 1, Type.NONE),
        pack(ToHost.LOG, 0, Type.JSON, b'{"level":1,"text":"x"}'),
        pack(ToHost.LOG, 0, Type.JSON, b'{"level":"log"}'),
        pack(ToHost.FAULT, 0, Type.JSON, b"7"),
        pack(ToHost.OP, 1, Type.JSON, b'["any"]'),
        pack(ToHost.OP, 1, Type.JSON, b"[1,2,3]"),
        pack(ToHost.OP, 1, Type.JSON, b"{}"),
        pack(ToHost.OP, 1, Type.JSON, b'["any","x",NaN]'),
        pack(ToHost.OP, 1, Type.JSON, b"[" * 200_000),
        pack(ToHost.OP, 1, Type.JSON, b"\xff\xfe"),
        pack(ToHost.OP, 1, Type.JSON, b'["timer","sleep",["soon"]]'),
        pack(ToHost.OP, 1, Type.JSON, b'["timer","wake",[1]]'),
        pack(ToHost.OP, 1, Type.JSON_AND_STREAM, join(b'["any","x",[]]', b"\0\0\0\0")),
        pack(ToHost.OP, 1, Type.JSON, b'["timer","sleep",[9999]]') * 2,
        pack(ToHost.REPLY, 1, Type.TEXT, b"once") + pack(ToHost.REPLY, 1, Type.TEXT, b"twice"),
        pack(ToHost.REPLY, 1, Type.TEXT_AND_STREAM, join(b"", b"\1\0\0\0")) * 2,
    ],
    ids=lambda record: repr(record[:40]),
)
async def test_records_that_break_a_rule_are_a_breach(
    host: Host, tmp_path: Path, record: bytes
) -> None:
    step, segment = wat.outbox_of(record)
    isolate = await isolate_of(host, tmp_path, wat.wasm(step, extra=segment))

    try:
        reply = await isolate.dispatch(Event("fetch"))
    except IsolateLost:
        pass
    else:  # answered before the breach, in the same batch
        await reply.settled()

    assert isinstance(isolate.dead, IsolateLost)
    assert isolate.dead.reason == "protocol"


async def test_a_request_settled_without_a_reply_fails(host: Host, tmp_path: Path) -> None:
    lost = await death_or_failure(host, tmp_path, pack(ToHost.SETTLED, 1, Type.NONE))

    assert "without a reply" in str(lost)


async def death_or_failure(host: Host, folder: Path, record: bytes) -> IsolateLost:
    step, segment = wat.outbox_of(record)
    isolate = await isolate_of(host, folder, wat.wasm(step, extra=segment))
    with pytest.raises(IsolateLost) as caught:
        await isolate.dispatch(Event("fetch"))
    return caught.value


async def test_a_flood_of_streams_is_a_breach(host: Host, tmp_path: Path) -> None:
    records = [
        pack(ToHost.OP, number, Type.JSON_AND_STREAM,
             join(b'["timer","sleep",[99999]]', number.to_bytes(4, "little")))
        for number in range(1, 1200)
    ]  # fmt: skip

    assert (await death_by(host, tmp_path, *records)).reason == "protocol"


async def test_a_flood_of_ops_is_answered_with_rejections(host: Host, tmp_path: Path) -> None:
    records = [
        pack(ToHost.OP, number, Type.JSON, b'["timer","sleep",[99999]]')
        for number in range(1, 5000)
    ]
    step, segment = wat.outbox_of(*records, pack(ToHost.SETTLED, 1, Type.NONE))
    isolate = await isolate_of(host, tmp_path, wat.wasm(step, extra=segment))

    with pytest.raises(IsolateLost):
        await isolate.dispatch(Event("fetch"))

    assert isolate.pending_ops == 0


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("(loop (br 0)) (i64.const 0)", CpuLimitExceeded),
        ("unreachable", IsolateLost),
        ("(i64.load (i32.const -8))", IsolateLost),
        (
            "(loop (if (i32.ne (memory.grow (i32.const 16)) (i32.const -1)) (then (br 1))))"
            "unreachable",
            MemoryLimitExceeded,
        ),
    ],
    ids=["endless loop", "trap", "out of bounds", "memory bomb"],
)
async def test_a_guest_that_misbehaves_in_a_step_ends_alone(
    host: Host, tmp_path: Path, step: str, error: type[Exception]
) -> None:
    limits = Limits(cpu_ms=40, memory_bytes=16 << 20)
    neighbour = await isolate_of(host, tmp_path, wat.wasm())
    content = wat.wasm(wat.AFTER_CONFIGURE + step)
    isolate = await isolate_of(host, tmp_path, content, limits)

    with pytest.raises(error):
        await isolate.dispatch(Event("fetch"))

    assert (await neighbour.dispatch(Event("fetch", "still here"))).head == "fetch\nstill here"


async def test_endless_recursion_ends_at_the_wasm_stack_and_not_at_the_threads(
    host: Host, tmp_path: Path
) -> None:
    step = wat.AFTER_CONFIGURE + "(call $deep) (i64.const 0)"
    isolate = await isolate_of(host, tmp_path, wat.wasm(step, extra="(func $deep (call $deep))"))

    with pytest.raises(IsolateLost, match="call stack exhausted"):
        await isolate.dispatch(Event("fetch"))


@pytest.mark.parametrize(
    "inbox",
    [
        "(i32.const -16)",
        "(i32.const 524288)",
        "(i32.const 0)",
        "unreachable",
        "(loop (br 0)) (i32.const 0)",
    ],
)
async def test_a_bad_inbox_ends_the_isolate_before_anything_is_written(
    host: Host, tmp_path: Path, inbox: str
) -> None:
    """The inbox is good for the sizes of loading, and bad when a larger one is asked for."""
    lie = f"(if (result i32) (i32.gt_u (local.get $bytes) (i32.const 65536)) (then {inbox})"
    lie += f" (else (i32.const {wat.INBOX})))"
    isolate = await isolate_of(host, tmp_path, wat.wasm(inbox=lie))

    with pytest.raises((IsolateLost, MemoryLimitExceeded, CpuLimitExceeded)):
        await isolate.dispatch(Event("fetch", "x" * 100_000))


async def test_random_outboxes_never_hurt_the_host(host: Host, tmp_path: Path) -> None:
    dice = random.Random(7)
    for _ in range(30):
        records = b"".join(
            RECORD.pack(
                dice.randrange(14), dice.randrange(4), dice.randrange(9), size := dice.randrange(40)
            )
            + dice.randbytes((size + 3) & ~3)
            for _ in range(dice.randrange(1, 6))
        )
        step, segment = wat.outbox_of(records)
        isolate = await isolate_of(host, tmp_path, wat.wasm(step, extra=segment))
        await asyncio.wait([asyncio.ensure_future(swallow(isolate))], timeout=5)
        await isolate.aclose()


async def swallow(isolate: Isolate) -> None:
    try:
        reply = await isolate.dispatch(Event("fetch", "x", body=b"body"))
        if isinstance(reply.body, AsyncIterator):
            async for _ in reply.body:
                pass
    except BelemError:
        pass


async def test_log_lines_of_unknown_requests_belong_to_no_request(
    host: Host, tmp_path: Path
) -> None:
    lines: list[LogLine] = []
    line = json.dumps({"level": "log", "text": "hi"}).encode()
    step, segment = wat.outbox_of(
        pack(ToHost.LOG, 77, Type.JSON, line), pack(ToHost.REPLY, 1, Type.TEXT, b"")
    )
    image = await host.build(wat.guest(tmp_path, wat.wasm(step, extra=segment)), PROGRAM)
    isolate = host.spawn(image, {}, Limits(), lines.append)

    await isolate.dispatch(Event("fetch"))

    assert lines[0] == LogLine(0, "log", "hi")
