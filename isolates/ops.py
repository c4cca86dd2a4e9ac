"""Host ops: what guests ask for, run as tasks against capabilities, answered in a later step."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Final

from belem.isolates.capability import Capability
from belem.isolates.limits import Limits
from belem.isolates.records import ProtocolBreach, join, json_bytes, pack, read_json, split
from belem.isolates.requests import Requests
from belem.isolates.streams import OutboundStream, Streams, close_source
from belem.isolates.tasks import Tasks
from belem.isolates.turns import Turns
from belem.sdk.abi import ToGuest, Type
from belem.sdk.errors import BelemError
from belem.sdk.ops import Answer, Call, Json, Rejection

__all__ = ["ABANDONED", "Ops", "rejection"]

_log: Final = logging.getLogger("belem.isolates")
_LONGEST_SLEEP_MS: Final = 2**31 - 1  # what setTimeout can hold
# Guests report rejections that nobody handles. This one says nothing to a worker's author.
ABANDONED: Final = "The operation was aborted because its request is over"
# Built-in capabilities have plain names, those of bindings are `type:name`: none can be mistaken.
_TIMER: Final = "timer"
_FETCH: Final = "fetch"
_FREE_OPS: Final = frozenset({_TIMER, "crypto"})  # they leave the isolate, but not the machine
_RESOLVED: Final = b"null"
# A byte of JSON counts for so many: it costs that, and more, once it is parsed.
_JSON_WEIGHT: Final = 8
_SMALL_ANSWER_BYTES: Final = 64 << 10  # not worth counting what is queued


class _Pending:
    """An op in flight: its task or timer, and the request that asked, if known.

    `overdue_at` is None for timers, which may take as long as they like.
    """

    __slots__ = ("cancel", "connects", "held_bytes", "overdue_at", "owner")

    def __init__(self, owner: int, held_bytes: int) -> None:
        self.owner = owner
        self.held_bytes = held_bytes
        self.overdue_at: float | None = None
        self.connects = False  # and so takes turns
        self.cancel: Callable[[], object] = _nothing


class Ops:
    """The ops of one isolate."""

    __slots__ = (
        "_capabilities", "_held_bytes", "_limits", "_loop", "_pending", "_post", "_post_later",
        "_queued_bytes", "_streams", "_subrequests", "_sweeping", "_tasks", "_turns",
    )  # fmt: skip

    def __init__(
        self,
        capabilities: Mapping[str, Capability],
        limits: Limits,
        tasks: Tasks,
        streams: Streams,
        post: Callable[[bytes, int], None],
        post_later: Callable[[bytes], None],
        queued_bytes: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._capabilities = capabilities
        self._limits = limits
        self._tasks = tasks
        self._streams = streams
        self._post = post
        self._post_later = post_later
        self._queued_bytes = queued_bytes  # posted, and not yet taken by the guest
        self._held_bytes = 0
        self._subrequests = 0
        self._loop = loop
        self._pending: dict[int, _Pending] = {}
        self._turns = Turns(limits.connections)
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._pending)

    def owner(self, id: int) -> int:
        pending = self._pending.get(id)
        return pending.owner if pending is not None else 0

    def start(self, id: int, type: int, payload: bytes, owner: int, requests: Requests) -> None:
        """Begin an op; a malformed one is a breach, an impossible one is rejected.

        `owner` is the request that the step is for, 0 if there are several: then the guest's word
        for it counts. A guest that lies moves its costs between its own requests.
        """
        if id in self._pending:
            raise ProtocolBreach(f"an op with the id {id}, which is in flight")
        body: bytes | OutboundStream | None = None
        if type != Type.JSON:
            payload, rest = split(payload)
            is_stream = type == Type.JSON_AND_STREAM
            body = self._streams.open_outbound(rest, owner) if is_stream else rest
            if body is None:
                self._post(rejection(id, "Error", self._streams.full_text), owner)
                return
        held_bytes = len(payload) * _JSON_WEIGHT + (len(body) if isinstance(body, bytes) else 0)
        refusal = self._refusal(payload, held_bytes)
        if refusal is not None:
            _close(body)
            self._post(rejection(id, "Error", refusal), owner)
            return
        name, method, args, claimed = _request(read_json(payload, self._limits.op_json_bytes))
        if owner == 0 and claimed in requests.live:
            owner = claimed
            if isinstance(body, OutboundStream):
                body.owner = owner
        if self._is_one_too_many(name, method, owner, requests):
            _close(body)
            self._post(rejection(id, "Error", "Too many subrequests."), owner)
            return
        pending = self._pending[id] = _Pending(owner, held_bytes)
        self._held_bytes += held_bytes
        if name == _TIMER and body is None:
            self._sleep(id, pending, method, args)
            return
        self._bound(pending)
        begin = partial(self._begin, id, pending, name, Call(method, args, body))
        if name == _FETCH:
            pending.connects = True
            pending.cancel = partial(_close, body)
            self._turns.enter(owner, id, begin)
        else:
            begin()

    def _begin(self, id: int, pending: _Pending, name: str, call: Call) -> None:
        task = self._tasks.start(self._run(id, pending, name, call))
        pending.cancel = partial(self._tasks.end, task)

    def cancel(self, id: int) -> None:
        """Stop an op that the guest no longer wants, and tell the guest that it is over."""
        self._stop(id, _aborted(id))

    def _stop(self, id: int, record: bytes) -> None:
        pending = self._pending.get(id)
        if pending is not None:
            self._forget(id, pending)
            pending.cancel()
            self._post(record, pending.owner)

    def _forget(self, id: int, pending: _Pending) -> None:
        del self._pending[id]
        self._held_bytes -= pending.held_bytes
        if pending.connects:
            self._turns.leave(pending.owner, id)

    def abandon(self) -> None:
        """Stop every op: no request is left to want it. The guest hears of it later."""
        for id, pending in list(self._pending.items()):
            pending.cancel()
            self._post_later(rejection(id, "AbortError", ABANDONED))
        self._clear()

    def end_all(self) -> None:
        """The isolate has ended; tasks are cancelled by their owner."""
        for pending in self._pending.values():
            pending.cancel()
        self._clear()

    def _clear(self) -> None:
        self._pending.clear()
        self._turns.clear()
        self._held_bytes = 0
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None

    def _bound(self, pending: _Pending) -> None:
        """Give an op its time. One timer looks after all of them: they hardly ever need it."""
        seconds = self._limits.op_seconds
        pending.overdue_at = self._loop.time() + seconds
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        now = self._loop.time()
        due = {id: at for id, pending in self._pending.items() if (at := pending.overdue_at)}
        seconds = self._limits.op_seconds
        for id, at in due.items():
            if at <= now:
                text = f"The operation did not finish within {seconds:g} seconds."
                self._stop(id, rejection(id, "TimeoutError", text))
        left = [at for at in due.values() if at > now]
        if left:
            self._sweeping = self._loop.call_later(min(left) - now, self._sweep)

    def _is_one_too_many(self, name: str, method: str, owner: int, requests: Requests) -> bool:
        """Count an op; say whether its request, or its isolate, has had its share."""
        reply = requests.live.get(owner)
        if reply is not None:
            reply.usage.count_op(name, method)
        if name in _FREE_OPS:
            return False
        # Of those that belong to nobody known, each request brings its share to the isolate.
        self._subrequests += 1
        limit = self._limits.subrequests
        if reply is None:
            return self._subrequests > limit * requests.opened
        reply.usage.subrequests += 1
        return reply.usage.subrequests > limit

    def _refusal(self, payload: bytes, held_bytes: int) -> str | None:
        limits = self._limits
        if len(self._pending) >= limits.max_pending_ops:
            return f"Too many operations are pending; the limit is {limits.max_pending_ops}."
        if len(payload) > limits.op_json_bytes:
            return (
                f"The operation's arguments are {len(payload)} bytes of JSON; "
                f"the limit is {limits.op_json_bytes}."
            )
        if self._held_bytes and self._held_bytes + held_bytes > limits.pending_op_bytes:
            return (
                f"The pending operations hold {self._held_bytes} bytes, and this one would hold "
                f"{held_bytes} more; the limit is {limits.pending_op_bytes}."
            )
        return None

    def _sleep(self, id: int, pending: _Pending, method: str, args: Json) -> None:
        """Wait for a timer: an op without a task, as the most frequent kind of all."""
        value = args[0] if isinstance(args, list) and args else 0
        if method != "sleep" or isinstance(value, bool) or not isinstance(value, int | float):
            raise ProtocolBreach("a timer that is not a sleep of a number of milliseconds")
        seconds = min(max(value, 0), _LONGEST_SLEEP_MS) / 1000
        pending.cancel = self._loop.call_later(seconds, self._finish, id, pending, None).cancel

    def _finish(self, id: int, pending: _Pending, record: bytes | None) -> None:
        """Hand over a result, unless the op was cancelled meanwhile."""
        if self._pending.get(id) is pending:
            self._forget(id, pending)
            if record is not None and len(record) > _SMALL_ANSWER_BYTES:
                record = self._fitting(id, record)
            self._post(record or pack(ToGuest.RESOLVE, id, Type.JSON, _RESOLVED), pending.owner)

    def _fitting(self, id: int, record: bytes) -> bytes:
        """Return the answer, or a rejection if more would wait here than the guest could hold."""
        queued_bytes = self._queued_bytes()
        if not queued_bytes or queued_bytes + len(record) <= self._limits.memory_bytes:
            return record
        return rejection(
            id,
            "RangeError",
            f"An answer of {len(record)} bytes does not fit: {queued_bytes} bytes of answers wait "
            f"to be taken; the limit is {self._limits.memory_bytes}.",
        )

    async def _run(self, id: int, pending: _Pending, name: str, call: Call) -> None:
        try:
            capability = self._capabilities.get(name)
            if capability is None:
                raise Rejection(f"There is no capability {name[:100]!r} here.")
            answer = await capability(call)
            self._resolve(id, pending, answer)
        except Rejection as error:
            self._finish(id, pending, rejection(id, error.name, error.message, error.properties))
        except BelemError as error:
            self._finish(id, pending, rejection(id, "Error", error.message))
        except (
            Exception
        ):  # the boundary of the op: the guest must not see what broke inside the host
            _log.exception("isolate_op_failed", extra={"capability": name})
            self._finish(id, pending, rejection(id, "Error", "internal error"))
        finally:
            _close(call.body)

    def _resolve(self, id: int, pending: _Pending, answer: Answer) -> None:
        value = _RESOLVED if answer.value is None else json_bytes(answer.value)
        body = answer.body
        if body is None:
            self._finish(id, pending, pack(ToGuest.RESOLVE, id, Type.JSON, value))
        elif isinstance(body, bytes):
            self._finish(
                id, pending, pack(ToGuest.RESOLVE, id, Type.JSON_AND_BYTES, join(value, body))
            )
        else:
            self._resolve_stream(id, pending, value, body)

    def _resolve_stream(
        self, id: int, pending: _Pending, value: bytes, body: AsyncIterator[bytes]
    ) -> None:
        if self._pending.get(id) is not pending or self._streams.full:
            self._tasks.start(close_source(body))
            self._finish(id, pending, rejection(id, "Error", self._streams.full_text))
            return
        stream = self._streams.open_inbound(body, pending.owner)
        payload = join(value, stream.id.to_bytes(4, "little"))
        self._finish(id, pending, pack(ToGuest.RESOLVE, id, Type.JSON_AND_STREAM, payload))
        self._streams.start(stream)


def _request(value: Json) -> tuple[str, str, Json, int]:
    if isinstance(value, list) and len(value) in (3, 4):
        name, method, args, *claimed = value
        owner = claimed[0] if claimed else 0
        if isinstance(name, str) and isinstance(method, str) and isinstance(owner, int):
            return name, method, args, owner
    raise ProtocolBreach("an op that is not [capability, method, args, request]")


def rejection(
    id: int, name: str, message: str, properties: Mapping[str, Json] | None = None
) -> bytes:
    error: Json = {"name": name, "message": message, "properties": properties or {}}
    return pack(ToGuest.REJECT, id, Type.JSON, json_bytes(error))


def _close(body: object) -> None:
    if isinstance(body, OutboundStream):
        body.close()


def _aborted(id: int) -> bytes:
    return rejection(id, "AbortError", "The operation was aborted")


def _nothing() -> None:
    return None
