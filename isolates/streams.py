"""Bodies in flight, with flow control both ways.

*Inbound* streams carry request bodies and op answers to the guest; their ids are made here and only
grow. *Outbound* streams carry reply bodies and op arguments from the guest; their ids are the
guest's. A sender never has more than a window of bytes unacknowledged, except that one chunk is
always allowed. So a slow reader on either side holds a window and a chunk in memory, and no more.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

from belem.isolates.errors import GuestThrew
from belem.isolates.records import ProtocolBreach, json_bytes, pack, read_object
from belem.isolates.tasks import Tasks
from belem.sdk.abi import GUEST_STREAM_WINDOW_BYTES, HOST_STREAM_WINDOW_BYTES, ToGuest, Type
from belem.sdk.errors import BelemError

__all__ = ["InboundStream", "OutboundStream", "Streams"]

Post = Callable[[bytes, int], None]  # a record for the guest, and the request that it is for (or 0)

_log: Final = logging.getLogger("belem.isolates")
_FAULT_BYTES: Final = 1 << 20
_FLUSH_BYTES: Final = HOST_STREAM_WINDOW_BYTES // 2
_LONGEST_STACK: Final = 16 << 10


class OutboundStream:
    """Bytes that the guest sends, read by one reader of this process."""

    __slots__ = (
        "_chunks", "_consumed", "_error", "_forget", "_post", "_waiter", "ended", "id", "on_end",
        "owner", "unacknowledged",
    )  # fmt: skip

    def __init__(
        self, id: int, owner: int, post: Post, forget: Callable[["OutboundStream"], None]
    ) -> None:
        self.id = id
        self.owner = owner
        self.unacknowledged = 0
        self.on_end: Callable[[], None] | None = None
        self._post = post
        self._forget = forget
        self._chunks: deque[bytes] = deque()
        self._consumed = 0  # taken by the reader, and not yet acknowledged to the guest
        self.ended = False
        self._error: BelemError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self.ended:
                raise StopAsyncIteration
            if self._waiter is not None:
                raise RuntimeError("A stream has one reader.")
            self._acknowledge()  # the guest may be waiting for the last byte of its window
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        chunks = self._chunks
        chunk = chunks.popleft() if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._consumed += len(chunk)
        if self._consumed >= _FLUSH_BYTES:
            self._acknowledge()
        return chunk

    async def aclose(self) -> None:
        """Read no more: the guest's stream is cancelled. Safe to call twice."""
        self.close()

    def close(self) -> None:
        if not self.ended:
            self._post(pack(ToGuest.STOP, self.id, Type.NONE), self.owner)
            self._chunks.clear()
            self.end()

    def drop(self) -> None:
        """Close without telling the guest, which is told that the whole request is cancelled."""
        if not self.ended:
            self._chunks.clear()
            self.end()

    def feed(self, chunk: bytes) -> None:
        """Take a chunk from the guest, or raise `ProtocolBreach` if its window was full."""
        if self.unacknowledged >= HOST_STREAM_WINDOW_BYTES:
            raise ProtocolBreach(f"a chunk with {self.unacknowledged} bytes unacknowledged")
        if chunk:
            self.unacknowledged += len(chunk)
            self._chunks.append(chunk)
            self._wake()

    def end(self, error: BelemError | None = None) -> None:
        """Let the reader finish what is here, then stop or raise."""
        if not self.ended:
            self.ended = True
            self._error = error
            self._forget(self)
            self._wake()
            if self.on_end is not None:
                self.on_end()

    def _acknowledge(self) -> None:
        if self._consumed and not self.ended:
            self._post(pack(ToGuest.ACK, self.id, Type.JSON, b"%d" % self._consumed), self.owner)
            self.unacknowledged -= self._consumed
            self._consumed = 0

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class InboundStream:
    """Bytes that the guest reads, pumped from an iterator as it asks for them."""

    __slots__ = (
        "_end", "_forget", "_post", "_room", "_source", "_stopped", "_unacknowledged",
        "awaiting_source", "blocked", "id", "owner",
    )  # fmt: skip

    def __init__(
        self,
        id: int,
        owner: int,
        source: AsyncIterator[bytes],
        post: Post,
        forget: Callable[["InboundStream"], None],
        blocked: Callable[[], None],
    ) -> None:
        self.id = id
        self.owner = owner
        self._end: Callable[[], None] | None = None
        self.awaiting_source = (
            True  # something will come, or the stream will end, without the guest
        )
        self.blocked = blocked
        self._source = source
        self._post = post
        self._forget = forget
        self._unacknowledged = 0
        self._stopped = False  # before the task is over: it ends a loop turn later
        self._room: asyncio.Future[None] | None = None

    def ends_with(self, end: Callable[[], None]) -> None:
        """Say how the task of `pump` is ended."""
        self._end = end

    def acknowledge(self, count: int) -> None:
        """The guest has consumed `count` bytes more."""
        if not 0 <= count <= self._unacknowledged:
            raise ProtocolBreach(f"{count} bytes acknowledged of {self._unacknowledged} sent")
        self._unacknowledged -= count
        if self._room is not None and not self._room.done():
            # At once, not when the pump's task gets its turn: until then the guest would seem hung.
            self.awaiting_source = True
            self._room.set_result(None)

    def stop(self) -> None:
        """The guest reads no more."""
        self._stopped = True
        self._forget(self)
        if self._end is not None:
            self._end()

    async def pump(self) -> None:
        """Send the source to its end. Cancelled when the guest stops or the isolate ends."""
        try:
            async for chunk in self._source:
                for start in range(0, len(chunk), GUEST_STREAM_WINDOW_BYTES):
                    await self._send(chunk[start : start + GUEST_STREAM_WINDOW_BYTES])
                if self._stopped:  # a source that never waits would keep the loop for itself
                    break
            self._finish(pack(ToGuest.END, self.id, Type.NONE))
        except BelemError as error:
            self._finish(_failure(self.id, error.message))
        except (
            Exception
        ):  # the boundary of the task: whatever the source raised ends only its stream
            _log.exception("isolate_stream_source_failed")
            self._finish(_failure(self.id, "internal error"))
        finally:
            self._forget(self)
            await close_source(self._source)

    async def _send(self, piece: bytes) -> None:
        while self._unacknowledged and (
            self._unacknowledged + len(piece) > GUEST_STREAM_WINDOW_BYTES
        ):
            self._room = asyncio.get_running_loop().create_future()
            self.awaiting_source = False
            self.blocked()
            try:
                await self._room
            finally:
                self._room = None
                self.awaiting_source = True
        if not self._stopped:
            self._unacknowledged += len(piece)
            self._post(pack(ToGuest.CHUNK, self.id, Type.BYTES, piece), self.owner)

    def _finish(self, record: bytes) -> None:
        self._forget(self)
        if not self._stopped:
            self._post(record, self.owner)


class Streams:
    """The streams of one isolate."""

    __slots__ = ("_blocked", "_last_inbound", "_limit", "_post", "_tasks", "inbound", "outbound")

    def __init__(
        self, tasks: Tasks, post: Post, blocked: Callable[[], None], *, limit: int
    ) -> None:
        self.inbound: dict[int, InboundStream] = {}
        self.outbound: dict[int, OutboundStream] = {}
        self._tasks = tasks
        self._post = post
        self._blocked = blocked
        self._limit = limit
        self._last_inbound = 0

    def __bool__(self) -> bool:
        """Say whether any is open."""
        return bool(self.inbound or self.outbound)

    @property
    def waiting_for_host(self) -> bool:
        """Say whether any stream will move without the guest doing anything."""
        return any(stream.awaiting_source for stream in self.inbound.values()) or any(
            stream.unacknowledged for stream in self.outbound.values()
        )

    @property
    def full(self) -> bool:
        return len(self.inbound) >= self._limit

    def open_inbound(self, source: AsyncIterator[bytes], owner: int) -> InboundStream:
        """Make a stream; `start` it after the record that tells the guest its id."""
        self._last_inbound += 1
        stream = InboundStream(
            self._last_inbound, owner, source, self._post, self._forget_inbound, self._blocked
        )
        self.inbound[stream.id] = stream
        return stream

    def start(self, stream: InboundStream) -> None:
        task = self._tasks.start(stream.pump())
        stream.ends_with(partial(self._tasks.end, task))

    @property
    def full_text(self) -> str:
        return f"Too many streams are open; the limit is {self._limit}."

    def open_outbound(self, id_bytes: bytes, owner: int) -> OutboundStream | None:
        """Take a stream that the guest announced; None, and the guest is told, if that is full."""
        id = int.from_bytes(id_bytes, "little")
        if len(id_bytes) != 4 or id == 0 or id in self.outbound:
            raise ProtocolBreach(f"an outbound stream with the id {id_bytes[:8]!r}")
        if len(self.outbound) >= self._limit:
            self._post(pack(ToGuest.STOP, id, Type.NONE), owner)
            return None
        stream = self.outbound[id] = OutboundStream(id, owner, self._post, self._forget_outbound)
        return stream

    def acknowledge(self, id: int, count: object) -> None:
        if type(count) is not int:
            raise ProtocolBreach("an acknowledgement that is not a whole number")
        stream = self._known_inbound(id)
        if stream is not None:
            stream.acknowledge(count)

    def stop(self, id: int) -> None:
        stream = self._known_inbound(id)
        if stream is not None:
            stream.stop()

    def close_inbound_of(self, owner: int) -> None:
        """Stop what a request that is over never read."""
        for stream in [stream for stream in self.inbound.values() if stream.owner == owner]:
            stream.stop()

    def end_all(self, cause: Callable[[int], BelemError]) -> None:
        """The isolate has ended: readers learn the cause, sources are closed by their tasks."""
        for outbound in list(self.outbound.values()):
            outbound.end(cause(outbound.owner))
        for inbound in list(self.inbound.values()):
            inbound.stop()

    def _known_inbound(self, id: int) -> InboundStream | None:
        """Return a live stream; None for one that is over, of which the guest may not know yet."""
        if not 0 < id <= self._last_inbound:
            raise ProtocolBreach(f"an inbound stream {id} that was never opened")
        return self.inbound.get(id)

    def _forget_inbound(self, stream: InboundStream) -> None:
        self.inbound.pop(stream.id, None)

    def _forget_outbound(self, stream: OutboundStream) -> None:
        self.outbound.pop(stream.id, None)


async def chunks_of(body: bytes) -> AsyncIterator[bytes]:
    """Return bytes as a stream, for a body too large to hand over whole."""
    yield body


async def close_source(source: AsyncIterator[bytes]) -> None:
    """Close an iterator that can be closed; its own error on the way out is only logged."""
    aclose = getattr(source, "aclose", None)
    if aclose is not None:
        try:
            await aclose()
        except Exception:  # the boundary to foreign iterators: nobody is left to tell
            _log.exception("isolate_stream_source_close_failed")


def read_fault(payload: bytes) -> GuestThrew:
    """Return the error that a guest's {name, message, stack, pass_through} describes.

    A worker can throw an error of any size; that must not cost its neighbours their isolate, nor
    fill a log.
    """
    if len(payload) > _FAULT_BYTES:
        return GuestThrew(
            "Error", f"An error of {len(payload)} bytes was thrown; the limit is {_FAULT_BYTES}."
        )
    fields = read_object(payload, _FAULT_BYTES)
    return GuestThrew(
        str(fields.get("name") or "Error"),
        _cut(str(fields.get("message") or "")),
        _cut(str(fields.get("stack") or "")),
        pass_through=fields.get("pass_through") is True,
    )


def _cut(text: str) -> str:
    more = len(text) - _LONGEST_STACK
    return text if more <= 0 else f"{text[:_LONGEST_STACK]}\n… ({more} characters more)"


def _failure(id: int, message: str) -> bytes:
    return pack(ToGuest.FAIL, id, Type.JSON, json_bytes({"name": "Error", "message": message}))
