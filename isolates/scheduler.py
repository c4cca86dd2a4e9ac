"""Where steps run: the first slice on the loop, the rest on threads, in turns.

A hop to a thread costs more than a whole short request, and a long step on the loop would hold up
everybody. The same fibre is polled on, wherever it began; wasmtime releases the GIL while it runs.
"""

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Final, Protocol

from belem.isolates.wasm import Instance, Ticker

__all__ = ["Outcome", "Scheduler", "Step"]

_NICENESS: Final = 5  # of the threads, on top of the process's
_TURN_SECONDS: Final = 0.05  # a long step gives its thread to the next one after this much CPU time


class Outcome(Enum):
    """Why a step came back."""

    ENDED = "ended"
    OVER_CPU = "over cpu"
    CANCELLED = "cancelled"


class Metering(Protocol):
    """Who is told of the CPU time that a step takes."""

    def add(self, cpu_seconds: float, /) -> bool:
        """Take the CPU time of a slice; say whether the step has to end."""
        ...


class Step:
    """A step past its first slice, run by a thread; the loop sets `cancelled`."""

    __slots__ = ("_is_over", "cancelled", "cpu_seconds", "instance", "meter")

    def __init__(self, instance: Instance, cpu_seconds: float, meter: Metering) -> None:
        self.instance = instance
        self.cpu_seconds = cpu_seconds
        self.meter = meter
        self.cancelled = False
        self._is_over = meter.add(cpu_seconds)

    def run(self) -> Outcome | None:
        """Poll until there is an outcome, or this turn is over (None)."""
        turn_ends = self.cpu_seconds + _TURN_SECONDS
        while self.cpu_seconds < turn_ends:
            if self.cancelled:
                return Outcome.CANCELLED
            if self._is_over:
                return Outcome.OVER_CPU
            started = time.thread_time()
            ended = self.instance.poll()
            used = time.thread_time() - started
            self.cpu_seconds += used
            self._is_over = self.meter.add(used)
            if ended:
                return Outcome.ENDED
        return None


class Scheduler:
    """A small named pool of threads for the long steps of all isolates of a host."""

    def __init__(self, ticker: Ticker, *, threads: int | None = None) -> None:
        self._ticker = ticker
        self._threads = threads or min(4, os.cpu_count() or 1)
        self._executor: ThreadPoolExecutor | None = None

    def run(
        self, step: Step, loop: asyncio.AbstractEventLoop, done: Callable[[Step, Outcome], None]
    ) -> None:
        """Run a step to its outcome, then call `done` on the loop."""

        def turn_over(future: asyncio.Future[Outcome | None]) -> None:
            outcome = future.result()
            if outcome is None:
                self.run(step, loop, done)
            else:
                done(step, outcome)

        loop.run_in_executor(self._pool(), self._turn, step).add_done_callback(turn_over)

    def close_later(
        self, instance: Instance, loop: asyncio.AbstractEventLoop, done: Callable[[], None]
    ) -> None:
        """Close an instance on a thread, then call `done` on the loop."""
        closing = loop.run_in_executor(self._pool(), instance.close)
        closing.add_done_callback(lambda _: done())

    def _pool(self) -> ThreadPoolExecutor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(
                self._threads, thread_name_prefix="belem-step", initializer=_give_way
            )
        return self._executor

    def _turn(self, step: Step) -> Outcome | None:
        # The loop may be idle meanwhile; without ticks the step would never come back.
        with self._ticker.held():
            return step.run()

    def close(self) -> None:
        """Let the threads go. Every step must have come back."""
        if self._executor is not None:
            self._executor.shutdown(wait=True)
            self._executor = None


def _give_way() -> None:
    """Let the loop's thread go first where there are fewer cores than busy threads.

    Only Linux has priorities of threads; elsewhere this would be the whole process's.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        thread = threading.get_native_id()
        nice = os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS
        os.setpriority(os.PRIO_PROCESS, thread, nice)
