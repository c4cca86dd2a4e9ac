"""The clock behind epoch deadlines: 400 ticks a second while any guest runs.

On Linux it is a POSIX timer whose notification function *is* wasmtime's increment: no Python, no
GIL. glibc starts a thread for each tick (some 3 % of a busy core at 1,000 a second), so there are
no more of them than a slice needs. Elsewhere one thread ticks (8 %, since it wants the GIL). Nobody
ticks while nobody steps: `touch` starts the clock, and a second without a touch stops it.
"""

import asyncio
import ctypes
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Protocol

from belem.isolates.wasm.engine import Engine
from belem.isolates.wasm.foreign import bindings, increment_epoch_address

__all__ = ["Ticker"]

_TICK_NS: Final = 2_500_000
_IDLE_SECONDS: Final = 1.0
_CLOCK_MONOTONIC: Final = 1
_SIGEV_THREAD: Final = 2


class _Clock(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class Ticker:
    """Ticks an engine's epoch while it is touched or held. Close it before the engine."""

    def __init__(self, engine: Engine, *, native: bool = sys.platform == "linux") -> None:
        self._clock: _Clock = _TimerClock(engine) if native else _ThreadClock(engine)
        self._lock = threading.Lock()
        self._running = False
        self._watched = False  # a check that stops an idle clock is on the loop's timer
        self._holds = 0
        self._closed = False
        self.touched = False  # set by each step; a plain attribute because it is on the hot path

    @property
    def running(self) -> bool:
        return self._running

    def touch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make sure that the clock ticks for at least the next second."""
        self.touched = True
        if not self._watched:
            self._watched = True
            with self._lock:
                self._start()
            loop.call_later(_IDLE_SECONDS, self._stop_if_idle, loop)

    @contextmanager
    def held(self) -> Generator[None]:
        """Tick until the block is left, on any thread."""
        with self._lock:
            self._holds += 1
            self._start()
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1
                if not self._watched:
                    self._stop()

    def close(self) -> None:
        """Stop for good. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._holds = 0
            self._stop()
            self._closed = True
            self._clock.close()

    def _start(self) -> None:
        if not self._running and not self._closed:
            self._clock.start()
            self._running = True

    def _stop(self) -> None:
        if self._running and not self._holds:
            self._clock.stop()
            self._running = False

    def _stop_if_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._closed:
            return
        if self.touched:
            self.touched = False
            loop.call_later(_IDLE_SECONDS, self._stop_if_idle, loop)
            return
        with self._lock:
            self._watched = False
            self._stop()


class _SigEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("padding", ctypes.c_char * 32),
    )


class _TimerSpec(ctypes.Structure):
    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("first_seconds", ctypes.c_long),
        ("first_ns", ctypes.c_long),
    )


class _TimerClock:
    def __init__(self, engine: Engine) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.timer_settime.argtypes = (
            ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
        )  # fmt: skip
        self._libc.timer_delete.argtypes = (ctypes.c_void_p,)
        # A notification runs in a thread of its own, which may be late by any time on a loaded
        # machine, also after the timer was deleted. So it has its own reference to the engine, and
        # that is never given back: 3 KB for each host that a process ever opens.
        reference = bindings.wasmtime_engine_clone(engine.native.ptr())
        event = _SigEvent(
            value=ctypes.cast(reference, ctypes.c_void_p).value,
            notify=_SIGEV_THREAD,
            function=increment_epoch_address(),
        )
        self._timer = ctypes.c_void_p()
        made = self._libc.timer_create(
            _CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)
        )
        self._check(made)

    def start(self) -> None:
        self._set(_TICK_NS)

    def stop(self) -> None:
        self._set(0)

    def close(self) -> None:
        self._check(self._libc.timer_delete(self._timer))

    def _set(self, period_ns: int) -> None:
        spec = _TimerSpec(interval_ns=period_ns, first_ns=period_ns)
        self._check(self._libc.timer_settime(self._timer, 0, ctypes.byref(spec), None))

    def _check(self, result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), "the epoch timer could not be set")


class _ThreadClock:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ticking = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="belem-epoch", daemon=True)
        self._thread.start()

    def start(self) -> None:
        self._ticking.set()

    def stop(self) -> None:
        self._ticking.clear()

    def close(self) -> None:
        self._ended = True
        self._ticking.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            self._ticking.wait()
            time.sleep(_TICK_NS / 1e9)
            self._engine.native.increment_epoch()
