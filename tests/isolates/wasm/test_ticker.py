"""The epoch clock: both kinds tick, stop when idle, and are gone after close."""

import asyncio
from collections.abc import Iterator

import pytest

from belem.isolates.snapshot import split_guest
from belem.isolates.wasm import Engine, EngineConfig, Instance, Ticker
from tests.isolates import wat

SPIN = '(func (export "spin") (loop (br 0)))'


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineConfig())
    yield engine
    engine.close()


@pytest.fixture
def spinning(engine: Engine) -> Iterator[Instance]:
    parts = split_guest(wat.wasm(extra=SPIN))
    instance = Instance(
        engine,
        engine.compile(parts.engine),
        engine.compile(parts.image),
        memory_limit_bytes=16 << 20,
    )
    instance.begin(instance.function(b"spin", (), None))
    yield instance
    instance.close()


@pytest.mark.parametrize("native", [True, False], ids=["timer", "thread"])
def test_a_held_clock_ends_slices(engine: Engine, spinning: Instance, native: bool) -> None:
    ticker = Ticker(engine, native=native)

    with ticker.held():
        assert ticker.running
        polls = [spinning.poll() for _ in range(3)]

    assert polls == [False, False, False]
    assert not ticker.running
    ticker.close()
    ticker.close()


@pytest.mark.parametrize("native", [True, False], ids=["timer", "thread"])
async def test_a_touched_clock_stops_when_it_is_idle(engine: Engine, native: bool) -> None:
    loop = HastyLoop()
    ticker = Ticker(engine, native=native)

    ticker.touch(loop)  # type: ignore[arg-type]  # a loop whose time passes on demand
    ticker.touch(loop)  # type: ignore[arg-type]
    loop.pass_time()
    ran_on = ticker.running
    loop.pass_time()

    assert ran_on
    assert not ticker.running
    assert not loop.waiting
    ticker.close()


async def test_a_hold_outlives_an_idle_check(engine: Engine) -> None:
    loop = HastyLoop()
    ticker = Ticker(engine)
    ticker.touch(loop)  # type: ignore[arg-type]  # as above

    with ticker.held():
        loop.pass_time()
        loop.pass_time()
        assert ticker.running

    assert not ticker.running
    ticker.close()


async def test_a_closed_clock_does_not_start_again(engine: Engine) -> None:
    ticker = Ticker(engine)
    ticker.close()

    ticker.touch(asyncio.get_running_loop())

    assert not ticker.running


class HastyLoop:
    """The one method of a loop that the clock uses."""

    def __init__(self) -> None:
        self.waiting: list[tuple[object, tuple[object, ...]]] = []

    def call_later(self, seconds: float, callback: object, *arguments: object) -> None:
        self.waiting.append((callback, arguments))

    def pass_time(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback, arguments in waiting:
            callback(*arguments)  # type: ignore[operator]  # it was given as a callback


def test_a_tick_that_comes_after_close_meets_an_engine() -> None:
    for _ in range(200):
        engine = Engine(EngineConfig())
        ticker = Ticker(engine)
        with ticker.held():
            engine.compile(wat.wasm())

        ticker.close()
        engine.close()

        # This process is still here: no late notification touched freed memory.
        assert not ticker.running
