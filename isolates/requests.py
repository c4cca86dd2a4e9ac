"""The requests of one isolate, from their event until they have settled.

A request is over for the host when the guest says SETTLED, when `waitUntil` has had its time, when
nothing is left that could make it go on, or when the isolate ends. The guest may speak of it a
little longer: a record for an id that was given out is then ignored, one for an id that never was
is a breach.
"""

import asyncio
import logging
from collections.abc import Callable, Set
from functools import partial
from typing import Final

from belem.isolates.errors import (
    GuestHung,
    GuestThrew,
    IsolateBusy,
    IsolateLost,
    MemoryLimitExceeded,
)
from belem.isolates.limits import Limits
from belem.isolates.logs import Logs
from belem.isolates.records import ProtocolBreach, pack, split
from belem.isolates.reply import Reply
from belem.isolates.streams import OutboundStream, Streams, read_fault
from belem.sdk.abi import ToGuest, Type
from belem.sdk.errors import BelemError

__all__ = ["Requests"]

_log: Final = logging.getLogger("belem.isolates")

_CUT_TEXT: Final = (
    "waitUntil() tasks did not complete within the allowed time after the response was sent or "
    "the client disconnected, and have been cancelled."
)
_OUT_OF_MEMORY: Final = "InternalError: out of memory"  # QuickJS's words
_FULL: Final = 0.9
_HUNG_WAIT_TEXT: Final = (
    "A waitUntil() task can never finish: nothing is left that could resolve its promise."
)


class Requests:
    """The table of requests that have not settled."""

    __slots__ = (
        "_answered", "_ask_memory_bytes", "_last_id", "_limits", "_logs", "_loop", "_on_last",
        "_post", "_streams", "live",
    )  # fmt: skip

    def __init__(
        self,
        limits: Limits,
        logs: Logs,
        streams: Streams,
        post: Callable[[bytes, int], None],
        on_last: Callable[[], None],
        ask_memory_bytes: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.live: dict[int, Reply] = {}
        self._limits = limits
        self._logs = logs
        self._streams = streams
        self._post = post
        self._on_last = on_last
        self._ask_memory_bytes = ask_memory_bytes
        self._loop = loop
        self._last_id = 0
        self._answered: list[Reply] = []  # in this step; their clocks start after it

    @property
    def opened(self) -> int:
        """How many requests there have been."""
        return self._last_id

    def open(self, on_answer: Callable[[Reply], None]) -> Reply:
        """Begin a request, or raise `IsolateBusy`."""
        limit = self._limits.max_requests
        if len(self.live) >= limit:
            raise IsolateBusy(
                f"The isolate has {len(self.live)} requests in flight; the limit is {limit}."
            )
        self._last_id = id = self._last_id + 1
        reply = self.live[id] = Reply(
            id, on_answer, self.close, self._limits.log_bytes, self._ask_memory_bytes
        )
        return reply

    def known(self, id: int) -> Reply | None:
        """Return a request, None for one that is over here; raise for one that never was."""
        reply = self.live.get(id)
        if reply is None and not 0 < id <= self._last_id:
            raise ProtocolBreach(f"a request {id} that was never sent")
        return reply

    # What the guest says

    def answer(self, id: int, type: int, payload: bytes) -> None:
        """Take a REPLY."""
        reply = self.known(id)
        body: bytes | OutboundStream | None = None
        head = payload
        if type != Type.TEXT:
            head, rest = split(payload)
            is_stream = type == Type.TEXT_AND_STREAM
            body = self._streams.open_outbound(rest, id) if is_stream else rest
            if body is None:
                if reply is not None and reply.fail(GuestThrew("Error", self._streams.full_text)):
                    self._answered.append(reply)
                return
        if reply is None or reply.closed:
            if isinstance(body, OutboundStream):
                body.close()
            return
        if reply.answered:
            raise ProtocolBreach(f"a second reply to request {id}")
        reply.head = head.decode("utf-8", "replace")
        reply.body = body
        reply.answered = True
        self._answered.append(reply)

    def throw(self, id: int, payload: bytes) -> None:
        """Take a THROW. Out of memory, and uncaught: that is what Workers has an outcome for."""
        error: BelemError = read_fault(payload)
        limit_bytes = self._limits.memory_bytes
        if error.message == _OUT_OF_MEMORY and self._ask_memory_bytes() > limit_bytes * _FULL:
            error = MemoryLimitExceeded(limit_bytes)
        reply = self.known(id)
        if reply is not None and reply.fail(error):
            self._answered.append(reply)

    def settled(self, id: int) -> None:
        """Take a SETTLED."""
        reply = self.known(id)
        if reply is not None:
            self._settle(reply)

    # Ends

    def close(self, reply: Reply) -> None:
        """Tell the guest, once, that the client is gone, and start the last clock."""
        reply.closed = True
        if reply.is_settled or reply.timer is not None:
            return
        if isinstance(reply.body, OutboundStream):
            reply.body.drop()
        self._post(pack(ToGuest.CANCEL, reply.id, Type.NONE), reply.id)
        self._start_clock(reply)

    def fail_all(
        self, cause: Callable[[int], BelemError], unseen: Set[int], memory_bytes: int
    ) -> None:
        """The isolate has ended. The requests whose event no step took can go to another one."""
        live, self.live = self.live, {}
        for reply in self._answered:  # in the step that was the last one
            self._loop.call_soon(self._hand_over, reply)
        self._answered.clear()
        for reply in live.values():
            reply.usage.memory_bytes = memory_bytes
            error = cause(reply.id)
            if reply.id in unseen:
                error = IsolateLost("ended", error.message, delivered=False)
            self._fail(reply, error)
            reply.settle()

    def fail_hung(self) -> None:
        """Nothing can wake the guest any more: every request ends here.

        A promise may be lost for want of memory; then that is what its author has to be told.
        """
        limit_bytes = self._limits.memory_bytes
        is_full = self._ask_memory_bytes() > limit_bytes * _FULL
        for reply in list(self.live.values()):
            error = MemoryLimitExceeded(limit_bytes) if is_full else GuestHung()
            failed = self._fail(reply, error)
            if isinstance(reply.body, OutboundStream) and not reply.body.ended:
                reply.body.end(error)
            elif not failed:
                self._logs.line(reply.id, reply, "warn", _HUNG_WAIT_TEXT)
            self._post(pack(ToGuest.CANCEL, reply.id, Type.NONE), reply.id)
            self._settle(reply)

    def announce(self) -> None:
        """Hand over the answers of this step; each request then has its time for `waitUntil`."""
        answered, self._answered = self._answered, []
        for reply in answered:
            body = reply.body
            if isinstance(body, OutboundStream) and not body.ended:
                body.on_end = partial(self._start_clock, reply)
            elif not reply.is_settled:
                self._start_clock(reply)
            self._hand_over(reply)

    def _hand_over(self, reply: Reply) -> None:
        try:
            reply.on_answer(reply)
        except Exception:  # the boundary to the caller: its fault must not end the isolate
            _log.exception("isolate_answer_failed")

    def _fail(self, reply: Reply, error: BelemError) -> bool:
        """Answer with an error outside a step: later, for the caller may be sending just now."""
        failed = reply.fail(error)
        if failed:
            self._loop.call_soon(self._hand_over, reply)
        return failed

    def _start_clock(self, reply: Reply) -> None:
        if reply.timer is None and not reply.is_settled:
            seconds = self._limits.wait_until_seconds
            reply.timer = self._loop.call_later(seconds, self._cut, reply)

    def _cut(self, reply: Reply) -> None:
        """`waitUntil` has had its time."""
        self._logs.line(reply.id, reply, "warn", _CUT_TEXT)
        self._post(pack(ToGuest.CANCEL, reply.id, Type.NONE), reply.id)
        self._settle(reply)

    def _settle(self, reply: Reply) -> None:
        if self.live.pop(reply.id, None) is None:
            return
        if self._streams.inbound:
            self._streams.close_inbound_of(reply.id)
        body = reply.body
        if isinstance(body, OutboundStream) and not body.ended:
            body.end(IsolateLost("protocol", "the request settled before its body ended"))
        if not reply.answered:
            self._fail(reply, IsolateLost("protocol", "the request settled without a reply"))
        reply.settle()
        if not self.live:
            self._on_last()
