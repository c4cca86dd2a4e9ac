"""One isolate: its inbox, its steps, and what comes out of them.

A step takes every record that has gathered, and starts at the end of the loop turn in which the
first of them came: all events read from sockets in that turn, and all ops that end in it, share one
crossing into wasm.

States, forward only: alive (idle, busy from the first record until its step is over, idle again),
then dead. `dead` is set before any request is failed, so whoever is woken sees it.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import ClassVar, Final

from belem.isolates.accounts import Accounts, Meter
from belem.isolates.calls import KEPT_BYTES, Inbox, OverCpu, read_outbox, reserve
from belem.isolates.capability import Capability
from belem.isolates.errors import (
    CpuLimitExceeded,
    IsolateLost,
    MemoryLimitExceeded,
    cause_of_end,
)
from belem.isolates.event import Event, LogLine
from belem.isolates.image import NEARLY_FULL_BYTES, Image
from belem.isolates.limits import Limits
from belem.isolates.logs import Logs
from belem.isolates.ops import ABANDONED, Ops, rejection
from belem.isolates.records import ProtocolBreach, join, pack, parse_some, read_json
from belem.isolates.reply import Reply
from belem.isolates.requests import Requests
from belem.isolates.scheduler import Outcome, Scheduler, Step
from belem.isolates.streams import Streams, chunks_of, read_fault
from belem.isolates.tasks import Tasks
from belem.isolates.wasm import Instance, Ticker, Trapped
from belem.sdk.abi import GUEST_STREAM_WINDOW_BYTES, RECORD, ToGuest, Type
from belem.sdk.errors import BelemError

__all__ = ["Isolate"]

_log: Final = logging.getLogger("belem.isolates")
_SEED_BYTES: Final = 32
_FIRST_REQUEST: Final = 1  # its id
_BATCH_BYTES: Final = 1 << 20
_GROWN_BYTES: Final = 4 << 20  # unmapping more than this would hold up the loop
_PART_RECORDS: Final = 25  # more than most steps send
_TURN_PARTS: Final = 10
_TURN_SECONDS: Final = 0.0005
_LONGEST_COUNT: Final = 32  # digits of an acknowledgement
_thread_time: Final = time.thread_time
_wall_time: Final = time.time
_clock: Final = time.monotonic


class Isolate:
    """A running copy of an image. Made by `Host.spawn`; belongs to that host's event loop."""

    def __init__(
        self,
        image: Image,
        instance: Instance,
        capabilities: Mapping[str, Capability],
        limits: Limits,
        log: Callable[[LogLine], None],
        scheduler: Scheduler,
        ticker: Ticker,
        ended: Callable[["Isolate"], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.image = image
        self.dead: BelemError | None = None
        self.cpu_ms = 0.0
        self.steps = 0
        self.worn = False  # its memory is nearly full, and never shrinks: better a new isolate
        self.on_idle: Callable[[Isolate], None] | None = None  # called then, in a turn of its own
        self._instance = instance
        self._capabilities = capabilities
        self._limits = limits
        self._log = log
        self._worn_bytes = limits.memory_bytes - limits.memory_bytes // 10
        self._scheduler = scheduler
        self._ticker = ticker
        self._ended = ended
        self._loop = loop
        self._long_step: Step | None = None
        self._freed: asyncio.Future[None] | None = None  # made only if a thread has to let go first
        self._tasks = Tasks(loop)
        self._begin()

    def _begin(self) -> None:
        """Make what belongs to one life of the guest's memory."""
        loop, limits, image = self._loop, self._limits, self.image
        self.idle_since = loop.time()  # when the last request had settled
        self._room = Inbox(image.inbox_address, image.inbox_capacity)
        # What the next step takes, and whom each record is for. A guest that is restored is to be
        # unlike its image's other copies: the first request pays for that.
        self._records = [pack(ToGuest.SEED, 0, Type.BYTES, os.urandom(_SEED_BYTES))]
        self._owners = [_FIRST_REQUEST]
        self._later: list[bytes] = []  # what goes with the next step but is no reason for one
        self._busy = False
        self._step_owners: list[int] = []
        self._logs = Logs(self._log, limits.log_bytes)
        self._streams = Streams(
            self._tasks, self._post, self._look_if_hung_soon, limit=limits.max_streams
        )
        self._ops = Ops(
            self._capabilities, limits, self._tasks, self._streams, self._post, self._later.append,
            self._queued_bytes, loop,
        )  # fmt: skip
        self._requests = Requests(
            limits, self._logs, self._streams, self._post, self._rest, self._memory_now, loop,
        )  # fmt: skip
        self._accounts = Accounts(self._live, limits.cpu_ms / 1000)

    @property
    def in_flight(self) -> int:
        """Return how many requests are not settled."""
        return len(self._requests.live)

    @property
    def in_long_step(self) -> bool:
        """Return whether a step has outlived its first slice: new events wait for its end."""
        return self._long_step is not None

    @property
    def pending_ops(self) -> int:
        """Return how many host ops are not answered."""
        return len(self._ops)

    @property
    def memory_bytes(self) -> int:
        """Return the size of the guest's memory, 0 once the isolate is dead."""
        return 0 if self.dead is not None else self._instance.memory_bytes

    async def dispatch(self, event: Event) -> Reply:
        """Run a handler and return when it has answered.

        Raises `GuestThrew`, `GuestHung`, `CpuLimitExceeded`, `MemoryLimitExceeded`, `IsolateLost`
        or `IsolateBusy`. Cancelling the call tells the guest that the client is gone.
        """
        answer: asyncio.Future[None] = self._loop.create_future()
        reply = self.send(event, partial(_wake, answer))
        try:
            await answer
        except asyncio.CancelledError:
            self._requests.close(reply)
            raise
        if reply.error is not None:
            raise reply.error
        return reply

    def send(self, event: Event, on_answer: Callable[[Reply], None]) -> Reply:
        """Run a handler and call back, once and never from within this call, when it has answered.

        `Reply.error` then is what `dispatch` raises. Without an answer, `Reply.aclose` says that
        the client is gone. Raises if the isolate is dead or busy.
        """
        if self.dead is not None:
            raise IsolateLost("ended", self.dead.message, delivered=False)
        reply = self._requests.open(on_answer)
        self._send_event(reply.id, event)
        if event.on_sent is not None:
            event.on_sent(reply)
        return reply

    def renew(self, rewind: Callable[[Instance], bool]) -> bool:
        """Become as fresh as a new isolate, if nothing of this one's life is left on the host.

        `rewind` puts the guest's memory back, or says that it cannot. After false the isolate has
        to be ended.
        """
        if self.dead is not None or self._busy or self._requests.live:
            return False
        # What still runs could speak of the old life to the new one.
        if self._tasks or self._ops or self._streams or not rewind(self._instance):
            return False
        self.cpu_ms = 0.0
        self.steps = 0
        self.worn = False
        self._begin()
        return True

    def end(self) -> None:
        """End the isolate; what it began with the host is cancelled. Safe to call twice."""
        self._die(IsolateLost("closed"))

    async def aclose(self) -> None:
        """End the isolate and wait until everything in it is over. Safe to call twice."""
        self.end()
        if self._freed is not None:
            await asyncio.shield(self._freed)
        await self._tasks.wait()

    def _memory_now(self) -> int:
        return self.memory_bytes

    def _live(self) -> Mapping[int, Reply]:
        return self._requests.live

    # Into the guest

    def _send_event(self, id: int, event: Event) -> None:
        head = f"{event.name}\n{event.head}".encode("utf-8", "replace")
        body = event.body
        if body is None:
            self._post(pack(ToGuest.EVENT, id, Type.TEXT, head), id)
            return
        if isinstance(body, bytes):
            if len(body) <= GUEST_STREAM_WINDOW_BYTES:
                self._post(pack(ToGuest.EVENT, id, Type.TEXT_AND_BYTES, join(head, body)), id)
                return
            body = chunks_of(body)
        stream = self._streams.open_inbound(body, id)
        payload = join(head, stream.id.to_bytes(4, "little"))
        self._post(pack(ToGuest.EVENT, id, Type.TEXT_AND_STREAM, payload), id)
        self._streams.start(stream)

    def _post(self, record: bytes, owner: int) -> None:
        if self.dead is None:
            self._records.append(record)
            self._owners.append(owner)
            if not self._busy:
                self._busy = True
                self._loop.call_soon(self._turn)

    def _queued_bytes(self) -> int:
        return sum(map(len, self._records))

    def _take_batch(self) -> bytes:
        """Take what has gathered, but for what would make the batch needlessly large."""
        if self._later:
            self._records[:0] = self._later
            self._owners[:0] = [0] * len(self._later)
            self._later.clear()
        records, owners = self._records, self._owners
        if len(records) == 1 or sum(map(len, records)) <= _BATCH_BYTES:
            self._records, self._owners, self._step_owners = [], [], owners
            return records[0] if len(records) == 1 else b"".join(records)
        count, total = 1, len(records[0])
        while total + len(records[count]) <= _BATCH_BYTES:
            total += len(records[count])
            count += 1
        self._step_owners = owners[:count]
        batch = b"".join(records[:count])
        del records[:count], owners[:count]
        return batch

    # Steps

    def _turn(self) -> None:
        if self.dead is not None:
            return
        try:
            batch = self._take_batch()
            length = len(batch)
            instance, room = self._instance, self._room
            self._ticker.touch(self._loop)
            if not length <= room.capacity <= KEPT_BYTES and not self._make_room(batch):
                return
            instance.write(room.address, batch)
            instance.begin_step(length, int(_wall_time() * 1e6))
            started = _thread_time()
            ended = instance.poll()
            used = _thread_time() - started
            if ended:
                self._count(used)
                over = self._accounts.charge_evenly(self._step_owners, used)
                self._end_step(over)
            else:
                meter = self._accounts.meter(instance, room.address, batch, self._step_owners)
                self._long_step = Step(instance, used, meter)
                ended_long = partial(self._end_long_step, meter)
                self._scheduler.run(self._long_step, self._loop, ended_long)
        except Exception as error:  # the boundary of the step: an isolate must die, not hang
            self._die(self._cause(error), self._step_owners)

    def _make_room(self, batch: bytes) -> bool:
        """Make the inbox larger, or fail the one large record that the guest cannot hold."""
        if reserve(self._instance, self._room, len(batch)):
            return True
        kind, id, _, length = RECORD.unpack_from(batch)
        if len(batch) <= _BATCH_BYTES or kind != ToGuest.RESOLVE:
            raise MemoryLimitExceeded(self._limits.memory_bytes)
        text = f"An answer of {length} bytes does not fit into the worker's memory."
        self._records.insert(0, rejection(id, "RangeError", text))
        self._owners.insert(0, self._step_owners[0])
        self._next_turn()
        return False

    def _end_long_step(self, meter: Meter, step: Step, outcome: Outcome) -> None:
        self._long_step = None
        if self.dead is not None:
            self._free()
            return
        self._count(step.cpu_seconds)
        over = self._accounts.charge_metered(meter)
        if outcome is Outcome.ENDED:
            try:
                self._end_step(over)
            except Exception as error:  # the boundary of the step, as in _turn
                self._die(self._cause(error), (meter.running,))
        else:
            self._die(self._over_cpu(over, step.cpu_seconds), over)

    def _end_step(self, over: Collection[int]) -> None:
        result = self._instance.finish()
        outbox = read_outbox(self._instance, result, self._limits.outbox_bytes)
        self._hear(outbox, 0, over)

    def _hear(self, outbox: bytes, offset: int, over: Collection[int]) -> None:
        """Act on the outbox: a flood of records a part at a time, between other isolates' turns."""
        handlers = self._handlers
        until = _clock() + _TURN_SECONDS
        for _ in range(_TURN_PARTS):
            records, offset = parse_some(outbox, offset, _PART_RECORDS)
            for kind, id, type, payload in records:
                handlers[kind](self, id, type, payload)
            if offset >= len(outbox):
                self._after_step(over)
                return
            if _clock() > until:  # writing log lines can take that long
                break
        self._loop.call_soon(self._hear_on, outbox, offset, over)

    def _hear_on(self, outbox: bytes, offset: int, over: Collection[int]) -> None:
        if self.dead is not None:
            return
        try:
            self._hear(outbox, offset, over)
        except Exception as error:  # the boundary of the step, as in _turn
            self._die(self._cause(error), self._step_owners)

    def _after_step(self, over: Collection[int]) -> None:
        requests = self._requests
        self.worn = self._instance.memory_bytes > self._worn_bytes
        # One that is settled has cost what it cost; what goes on for nobody has no other end.
        if over and (0 in over or any(id in requests.live for id in over)):
            self._die(self._over_cpu(over, 0.0), over)
            return
        requests.announce()
        self._next_turn()
        if requests.live and not self._busy:
            self._look_if_hung()

    def _next_turn(self) -> None:
        if self._records:
            self._busy = True
            self._loop.call_soon(self._turn)
        else:
            self._busy = False

    def _count(self, cpu_seconds: float) -> None:
        self.steps += 1
        self.cpu_ms += cpu_seconds * 1000

    def _over_cpu(self, over: Collection[int], step_seconds: float) -> CpuLimitExceeded:
        live = self._requests.live
        used = [live[id].usage.cpu_seconds for id in over if id in live]
        return CpuLimitExceeded(max(used, default=step_seconds) * 1000, self._limits.cpu_ms)

    def _rest(self) -> None:
        """No request is left."""
        self._ops.abandon()
        self.idle_since = self._loop.time()
        if self.on_idle is not None and self.dead is None:
            self._loop.call_soon(self._say_idle)

    def _say_idle(self) -> None:
        if self.on_idle is not None and self.dead is None and not self._requests.live:
            self.on_idle(self)

    def _look_if_hung_soon(self) -> None:
        self._loop.call_soon(self._look_if_hung)

    def _look_if_hung(self) -> None:
        """Fail every request if nothing is left that could ever wake the guest."""
        if not (self._busy or self._ops or self._streams.waiting_for_host or self.dead):
            self._requests.fail_hung()

    # Ends

    def _cause(self, error: Exception) -> BelemError:
        """Say what ended the isolate, from what was raised in a step."""
        limits = self._limits
        if isinstance(error, BelemError):
            return error
        if isinstance(error, OverCpu):
            return CpuLimitExceeded(error.used_seconds * 1000, limits.cpu_ms)
        if isinstance(error, ProtocolBreach):
            return IsolateLost("protocol", str(error))
        if isinstance(error, Trapped):
            if self._instance.memory_bytes + NEARLY_FULL_BYTES > limits.memory_bytes:
                return MemoryLimitExceeded(limits.memory_bytes)
            return IsolateLost("trap", str(error))
        _log.error("isolate_step_failed", exc_info=error)
        return IsolateLost("internal", "the host failed in a step")

    def _die(self, error: BelemError, blamed: Collection[int] = ()) -> None:
        """Fail the requests, cancel the ops, free the memory. Other isolates do not notice.

        The requests to blame fail with the error, the others with the loss of their isolate.
        """
        if self.dead is not None:
            return
        self.dead = error
        cause = partial(cause_of_end, error, frozenset(blamed))
        self._tasks.cancel()
        self._ops.end_all()
        self._streams.end_all(cause)
        heads = [RECORD.unpack_from(record) for record in self._records]
        unseen = {id for kind, id, _, _ in heads if kind == ToGuest.EVENT}
        self._requests.fail_all(cause, unseen, self._instance.memory_bytes)
        self._records.clear()
        self._later.clear()
        if self._long_step is not None:
            self._long_step.cancelled = True
            self._freed = self._loop.create_future()
        else:
            self._free()

    def _free(self) -> None:
        if self._instance.memory_bytes > self.image.memory_bytes + _GROWN_BYTES:
            self._freed = self._freed or self._loop.create_future()
            self._scheduler.close_later(self._instance, self._loop, self._freed_now)
        else:
            self._instance.close()
            self._freed_now()

    def _freed_now(self) -> None:
        self._ended(self)
        if self._freed is not None and not self._freed.done():
            self._freed.set_result(None)

    # Out of the guest: one method for each kind of record

    def _on_nothing(self, id: int, type: int, payload: bytes) -> None:
        raise ProtocolBreach("a record of kind 0")

    def _on_fault(self, id: int, type: int, payload: bytes) -> None:
        error = read_fault(payload)
        if error.text == ABANDONED:
            return
        text = f"Uncaught {error.message}" + (f"\n{error.stack}" if error.stack else "")
        self._logs.line(id, self._requests.live.get(id), "error", text)

    def _on_log(self, id: int, type: int, payload: bytes) -> None:
        self._logs.record(id, self._requests.live.get(id), payload)

    def _on_reply(self, id: int, type: int, payload: bytes) -> None:
        self._requests.answer(id, type, payload)

    def _on_chunk(self, id: int, type: int, payload: bytes) -> None:
        stream = self._streams.outbound.get(id)
        if stream is not None:  # else it was closed here, and the guest does not know yet
            stream.feed(payload)

    def _on_end(self, id: int, type: int, payload: bytes) -> None:
        stream = self._streams.outbound.get(id)
        if stream is not None:
            stream.end()

    def _on_stream_fail(self, id: int, type: int, payload: bytes) -> None:
        stream = self._streams.outbound.get(id)
        if stream is not None:
            stream.end(read_fault(payload))

    def _on_throw(self, id: int, type: int, payload: bytes) -> None:
        self._requests.throw(id, payload)

    def _on_settled(self, id: int, type: int, payload: bytes) -> None:
        self._requests.settled(id)

    def _on_ack(self, id: int, type: int, payload: bytes) -> None:
        self._streams.acknowledge(id, read_json(payload, _LONGEST_COUNT))

    def _on_stop(self, id: int, type: int, payload: bytes) -> None:
        self._streams.stop(id)

    def _on_cancel(self, id: int, type: int, payload: bytes) -> None:
        self._ops.cancel(id)

    def _on_op(self, id: int, type: int, payload: bytes) -> None:
        owners = self._step_owners
        owner = owners[0] if owners.count(owners[0]) == len(owners) else 0
        self._ops.start(id, type, payload, owner, self._requests)

    _handlers: ClassVar = (  # by kind
        _on_nothing,
        _on_fault,
        _on_log,
        _on_reply,
        _on_chunk,
        _on_end,
        _on_stream_fail,
        _on_throw,
        _on_settled,
        _on_ack,
        _on_stop,
        _on_cancel,
        _on_op,
    )


def _wake(answer: asyncio.Future[None], _: Reply) -> None:
    if not answer.done():  # else the caller of `dispatch` was cancelled
        answer.set_result(None)
