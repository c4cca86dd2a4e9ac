"""The scheduler: which sequences share the next step of the device. Continuous batching.

A *turn* is one job on the device's thread: it lets waiting generations into free slots, feeds one
chunk of one prompt, then steps every slot that decodes. While there is work a turn books the next
one, so that other servables on the device get turns in between. Generations join and leave at every
turn; all of them are touched only by the turn, under no lock, but for the few fields that say so.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from belem.runtime.inference.errors import Draining, InferenceFailed, QueueFull
from belem.runtime.inference.text.backend import Row, TextBackend
from belem.runtime.inference.text.sampling import Sampler, Sampling
from belem.sdk.errors import BelemError

__all__ = ["Engine", "FinishReason", "Finished", "Generation", "GenerationSpec"]

FinishReason: TypeAlias = Literal["stop", "length"]

_logger = logging.getLogger("belem.inference")

_MAX_UNREAD_TOKENS: Final = 64  # a reader this far behind pauses its own generation
_BUSY_CHUNK_TOKENS: Final = 64  # a longer one would hold up those that decode
_IDLE_CHUNK_TOKENS: Final = 256


class _Thread(Protocol):
    def submit(self, job: Callable[[], None], /) -> object: ...


@dataclass(frozen=True, slots=True)
class GenerationSpec:
    """What to generate from: at least one prompt token, and room for `max_tokens` behind them."""

    prompt: Sequence[int]
    max_tokens: int
    stops: frozenset[int]
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Finished:
    """How a generation ended. `cached_tokens` of the prompt were in the slot's cache already."""

    reason: FinishReason
    completion_tokens: int
    cached_tokens: int


class Generation:
    """One generation's tokens, read on the event loop while the device's thread makes them.

    Iterate over it for tokens; `finished` is set behind the last. Close it in any case: that frees
    its slot at the next turn.
    """

    def __init__(self, spec: GenerationSpec, *, wake_engine: Callable[[], None]) -> None:
        self.spec = spec
        self.finished: Finished | None = None
        self.sampler = Sampler(spec.sampling)
        self.cancelled = False  # set by the loop, read by turns: a flag needs no lock
        self._wake_engine = wake_engine
        self._loop = asyncio.get_running_loop()
        self._unread: deque[int] = deque()  # appended by turns, popped by the loop: both atomic
        self._ended: Finished | BelemError | None = None
        self._news = asyncio.Event()

    @property
    def paused(self) -> bool:
        """Whether the reader is too far behind to be given more."""
        return len(self._unread) >= _MAX_UNREAD_TOKENS

    def close(self) -> None:
        """Stop generating. Safe to call twice, and after the end."""
        self.cancelled = True
        self._wake_engine()

    def deliver(self, token: int) -> None:
        """Hand a token to the reader. For turns."""
        self._unread.append(token)
        self._tell()

    def end(self, how: Finished | BelemError) -> None:
        """Hand the end to the reader. For turns; the first end counts."""
        if self._ended is None:
            self._ended = how
            self._tell()

    def __aiter__(self) -> "Generation":
        return self

    async def __anext__(self) -> int:
        while not self._unread:
            # The end is written after the last token, so it is read before looking again.
            ended = self._ended
            if self._unread:
                break
            if isinstance(ended, Finished):
                self.finished = ended
                raise StopAsyncIteration
            if ended is not None:
                raise ended
            self._news.clear()
            if not self._unread and self._ended is None:
                await self._news.wait()
        was_paused = self.paused
        token = self._unread.popleft()
        if was_paused:
            self._wake_engine()
        return token

    def _tell(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:  # the loop is closed: nobody reads any more
            self.cancelled = True


@dataclass(slots=True)
class _Slot:
    """One sequence of the cache. `fed` are the tokens that the cache holds, from position 0 on."""

    index: int
    fed: list[int] = field(default_factory=list[int])
    generation: Generation | None = None
    next_token: int | None = None  # sampled, delivered and not yet fed; None while prefilling
    joined: int = 0  # the generation's number: who came first
    completion_tokens: int = 0
    cached_tokens: int = 0


class Engine:
    """Generations over the slots of one backend, first come first served."""

    def __init__(self, backend: TextBackend, thread: _Thread, *, max_waiting: int) -> None:
        self._backend = backend
        self._thread = thread
        self._max_waiting = max_waiting
        self._slots = [_Slot(index) for index in range(backend.slots)]
        # Guards what the loop and the turns both write: the queue, and whether a turn is booked.
        self._lock = threading.Lock()
        self._waiting: deque[Generation] = deque()
        self._idle_jobs: deque[Callable[[], object]] = deque()
        self._booked = False
        self._woken = False
        self._closed = False
        self._joined = 0

    def submit(self, spec: GenerationSpec) -> Generation:
        """Queue a generation; raise QueueFull where too many wait."""
        generation = Generation(spec, wake_engine=self._wake)
        with self._lock:
            if self._closed:
                raise Draining
            # Those that the next turn lets into free slots, or drops, do not wait.
            free = sum(slot.generation is None for slot in self._slots)
            waiting = sum(not generation.cancelled for generation in self._waiting)
            if waiting >= self._max_waiting + free:
                raise QueueFull
            self._waiting.append(generation)
        self._wake()
        return generation

    def run_when_idle(self, jobs: Sequence[Callable[[], object]]) -> None:
        """Do these one by one in turns that have nothing else to do."""
        with self._lock:
            self._idle_jobs += jobs
        self._wake()

    def close(self) -> None:
        """Refuse what is new, and end what is there at the next turn. Safe to call twice."""
        with self._lock:
            self._closed = True
        self._wake()

    def _wake(self) -> None:
        """Book a turn, unless one is booked. A wake during a turn makes it look again."""
        with self._lock:
            self._woken = True
            if self._booked:
                return
            self._booked = True
        try:
            self._thread.submit(self._turn)
        except RuntimeError:  # the device's thread has been closed
            with self._lock:
                self._booked = False

    def _turn(self) -> None:
        with self._lock:
            self._woken = False
        try:
            worked = self._work()
        except BelemError as error:
            worked = self._fail(error)
        except Exception as error:  # the thread's boundary: waiters must hear of it, whatever it is
            _logger.exception("turn_failed")
            worked = self._fail(InferenceFailed(f"The step failed: {type(error).__name__}."))
        with self._lock:
            self._booked = worked or self._woken
            book = self._booked
        if book:
            try:
                self._thread.submit(self._turn)
            except RuntimeError:
                self._booked = False

    def _work(self) -> bool:
        """Do one turn; return whether anything was computed."""
        if self._closed:
            self._fail(Draining())
            return False
        self._leave()
        self._join()
        return self._prefill() | self._decode() or self._idle()

    def _leave(self) -> None:
        """Free the slots, and the places in the queue, of generations that nobody reads."""
        for slot in self._slots:
            if slot.generation is not None and slot.generation.cancelled:
                slot.generation = None
        with self._lock:
            if any(generation.cancelled for generation in self._waiting):
                self._waiting = deque(g for g in self._waiting if not g.cancelled)

    def _join(self) -> None:
        """Let waiting generations into free slots, each where most of its prompt is cached."""
        while free := [slot for slot in self._slots if slot.generation is None]:
            with self._lock:
                if not self._waiting:
                    return
                generation = self._waiting.popleft()
                prompt = generation.spec.prompt
                # Of slots that share as little, the one with the least to lose.
                slot = max(free, key=lambda slot: (_shared(slot.fed, prompt), -len(slot.fed)))
                slot.generation = generation
            # The last token is fed in any case: its logits are what the answer starts from.
            slot.cached_tokens = min(_shared(slot.fed, prompt), len(prompt) - 1)
            del slot.fed[slot.cached_tokens :]
            self._joined += 1
            slot.joined = self._joined
            slot.next_token = None
            slot.completion_tokens = 0

    def _prefill(self) -> bool:
        """Feed one chunk of the prompt that came first."""
        slots = [slot for slot in self._slots if slot.generation and slot.next_token is None]
        if not slots:
            return False
        slot = min(slots, key=lambda slot: slot.joined)
        assert slot.generation is not None
        busy = any(other.next_token is not None and other.generation for other in self._slots)
        limit = _BUSY_CHUNK_TOKENS if busy else _IDLE_CHUNK_TOKENS
        prompt = slot.generation.spec.prompt
        start = len(slot.fed)
        chunk = list(prompt[start : start + limit])
        logits = self._backend.prefill(slot.index, start, chunk)
        slot.fed += chunk
        if len(slot.fed) == len(prompt):
            self._advance(slot, slot.generation, slot.generation.sampler.choose(logits))
        return True

    def _decode(self) -> bool:
        """Step every slot whose reader keeps up."""
        stepping: list[tuple[_Slot, Generation, Row]] = []
        for slot in self._slots:
            generation = slot.generation
            if generation and slot.next_token is not None and not generation.paused:
                row = Row(slot.index, len(slot.fed), slot.next_token)
                stepping.append((slot, generation, row))
        if not stepping:
            return False
        logits = self._backend.decode([row for _, _, row in stepping])
        for (slot, generation, row), row_logits in zip(stepping, logits, strict=True):
            slot.fed.append(row.token)
            self._advance(slot, generation, generation.sampler.choose(row_logits))
        return True

    def _idle(self) -> bool:
        """Do one of the jobs that can wait, unless somebody is about to need the device."""
        if any(slot.generation for slot in self._slots):
            return False
        with self._lock:
            if not self._idle_jobs:
                return False
            job = self._idle_jobs.popleft()
        job()
        return True

    def _advance(self, slot: _Slot, generation: Generation, token: int) -> None:
        """Deliver a token that was chosen, or end the generation."""
        if token in generation.spec.stops:
            self._finish(slot, generation, "stop")
            return
        slot.completion_tokens += 1
        slot.next_token = token
        generation.deliver(token)
        if slot.completion_tokens >= generation.spec.max_tokens:
            self._finish(slot, generation, "length")

    def _finish(self, slot: _Slot, generation: Generation, reason: FinishReason) -> None:
        # Free first: a reader that sees the end may ask again at once.
        slot.generation = None
        generation.end(Finished(reason, slot.completion_tokens, slot.cached_tokens))

    def _fail(self, error: BelemError) -> bool:
        """End everything with an error. The caches may be half written: they are forgotten."""
        ended = [slot.generation for slot in self._slots if slot.generation is not None]
        for slot in self._slots:
            slot.generation = None
            slot.fed.clear()
        with self._lock:
            ended += self._waiting
            self._waiting.clear()
        for generation in ended:
            generation.end(error)
        return False


def _shared(fed: Sequence[int], prompt: Sequence[int]) -> int:
    count = 0
    for had, wanted in zip(fed, prompt, strict=False):
        if had != wanted:
            break
        count += 1
    return count
