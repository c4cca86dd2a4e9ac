"""Long steps on threads: turns, limits, cancellation."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from belem.isolates.scheduler import Outcome, Scheduler, Step
from belem.isolates.wasm import Engine, EngineConfig, Ticker


class Slices:
    """An instance that ends after a number of polls, each a millisecond of CPU time."""

    def __init__(self, polls: int) -> None:
        self.polls = polls
        self.threads: set[str] = set()
        self.niceness = 0

    def poll(self) -> bool:
        self.threads.add(threading.current_thread().name)
        self.niceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        self.polls -= 1
        sum(range(30_000))
        return self.polls <= 0


class Limit:
    """A meter for one request."""

    def __init__(self, left_seconds: float) -> None:
        self.left_seconds = left_seconds

    def add(self, cpu_seconds: float) -> bool:
        self.left_seconds -= cpu_seconds
        return self.left_seconds < 0


def step_of(slices: Slices, limit_seconds: float = 60) -> Step:
    return Step(slices, 0.0, Limit(limit_seconds))  # type: ignore[arg-type]  # only polled


async def outcome_of(scheduler: Scheduler, step: Step) -> Outcome:
    done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    scheduler.run(step, asyncio.get_running_loop(), lambda _, outcome: done.set_result(outcome))
    return await done


@pytest.fixture
def ticker() -> Iterator[Ticker]:
    engine = Engine(EngineConfig())
    ticker = Ticker(engine)
    yield ticker
    ticker.close()
    engine.close()


@pytest.fixture
def scheduler(ticker: Ticker) -> Iterator[Scheduler]:
    scheduler = Scheduler(ticker, threads=1)
    yield scheduler
    scheduler.close()
    scheduler.close()


async def test_a_step_runs_to_its_end_on_a_named_thread(scheduler: Scheduler) -> None:
    slices = Slices(5)

    outcome = await outcome_of(scheduler, step_of(slices))

    assert outcome is Outcome.ENDED
    assert slices.threads == {"belem-step_0"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
async def test_the_threads_give_way_to_the_loops(scheduler: Scheduler) -> None:
    slices = Slices(2)

    await outcome_of(scheduler, step_of(slices))

    assert slices.niceness > os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


async def test_a_step_over_its_cpu_time_is_handed_back(scheduler: Scheduler) -> None:
    step = step_of(Slices(10**9), 0.02)

    assert await outcome_of(scheduler, step) is Outcome.OVER_CPU
    assert step.cpu_seconds > 0.02


async def test_a_cancelled_step_is_handed_back(scheduler: Scheduler) -> None:
    step = step_of(Slices(10**9))
    step.cancelled = True

    assert await outcome_of(scheduler, step) is Outcome.CANCELLED


async def test_long_steps_take_turns_on_one_thread(scheduler: Scheduler) -> None:
    long, short = step_of(Slices(10**9), 1.0), step_of(Slices(2))

    running = asyncio.ensure_future(outcome_of(scheduler, long))
    await asyncio.sleep(0)
    first = await outcome_of(scheduler, short)

    assert first is Outcome.ENDED
    assert not running.done()
    long.cancelled = True
    assert await running is Outcome.CANCELLED


def test_no_thread_is_started_before_it_is_needed(ticker: Ticker) -> None:
    before = threading.active_count()

    Scheduler(ticker).close()

    assert threading.active_count() == before


async def test_the_clock_ticks_while_a_step_runs_though_the_loop_is_idle(
    scheduler: Scheduler, ticker: Ticker
) -> None:
    seen: list[bool] = []

    class Watching(Slices):
        def poll(self) -> bool:
            seen.append(ticker.running)
            return super().poll()

    await outcome_of(scheduler, step_of(Watching(3)))

    assert seen == [True, True, True]
    assert not ticker.running
