"""Fibre calls, memory access and traps: every private binding that is used, used."""

import threading
from collections.abc import Callable, Iterator

import pytest

from belem.isolates.snapshot import split_guest
from belem.isolates.wasm import Engine, EngineConfig, Instance, Ticker, Trapped, WasmError
from tests.isolates import wat

I32, I64 = 0, 1
Start = Callable[..., Instance]

ADD = """(func (export "add") (param i32 i64) (result i64)
  (i64.add (local.get 1) (i64.extend_i32_u (local.get 0))))"""
SPIN = '(func (export "spin") (loop (br 0)))'
FAIL = '(func (export "fail") unreachable)'
GROW = '(func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))'
EXTRA = ADD + SPIN + FAIL + GROW


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineConfig())
    yield engine
    engine.close()


@pytest.fixture
def ticker(engine: Engine) -> Iterator[Ticker]:
    ticker = Ticker(engine)
    with ticker.held():
        yield ticker
    ticker.close()


@pytest.fixture
def start(engine: Engine) -> Iterator[Start]:
    instances: list[Instance] = []

    def started(content: bytes | None = None, limit: int = 16 << 20) -> Instance:
        parts = split_guest(content or wat.wasm(extra=EXTRA))
        code, image = engine.compile(parts.engine), engine.compile(parts.image)
        instances.append(Instance(engine, code, image, memory_limit_bytes=limit))
        return instances[-1]

    yield started
    for instance in instances:
        instance.close()
        instance.close()


def test_a_call_returns_what_the_function_returns(start: Start) -> None:
    instance = start()
    add = instance.function(b"add", (I32, I64), I64)

    results: list[int] = []
    for arguments in ((1, 2), (7, 1 << 40), (0, -1)):
        instance.begin(add, *arguments)
        assert instance.poll()
        results.append(instance.finish())

    assert results == [3, 7 + (1 << 40), (1 << 64) - 1]


def test_a_slice_that_ends_yields_and_the_next_thread_goes_on(start: Start, ticker: Ticker) -> None:
    instance = start()
    instance.begin(instance.function(b"spin", (), None))
    polls: list[bool] = [instance.poll()]

    thread = threading.Thread(target=lambda: polls.append(instance.poll()))
    thread.start()
    thread.join()
    instance.close()

    assert polls == [False, False]


def test_a_trap_raises_and_says_why(start: Start) -> None:
    instance = start()
    instance.begin(instance.function(b"fail", (), None))
    assert instance.poll()

    with pytest.raises(Trapped, match="unreachable"):
        instance.finish()


def test_two_calls_at_once_are_refused(start: Start, ticker: Ticker) -> None:
    instance = start()
    instance.begin(instance.function(b"spin", (), None))

    with pytest.raises(RuntimeError, match="in flight"):
        instance.begin_step(0, 0)


def test_memory_is_read_and_written_within_its_bounds(start: Start) -> None:
    instance = start()
    size = instance.memory_bytes

    instance.write(size - 4, b"last")

    assert instance.read(size - 4, 4) == b"last"
    for address, length in ((size - 3, 4), (size, 1), (1 << 40, 1)):
        with pytest.raises(Trapped, match="bytes of memory"):
            instance.read(address, length)
        with pytest.raises(Trapped, match="bytes of memory"):
            instance.write(address, b"x" * length)


def test_memory_that_grew_can_be_reached(start: Start) -> None:
    instance = start()
    size = instance.memory_bytes
    instance.begin(instance.function(b"grow", (I32,), I32), 4)
    assert instance.poll()
    instance.finish()

    instance.write(size + 100, b"new")

    assert instance.read(size + 100, 3) == b"new"
    assert instance.memory_bytes == size + 4 * 65536


def test_memory_does_not_grow_over_the_limit(start: Start) -> None:
    instance = start(limit=1 << 20)
    instance.begin(instance.function(b"grow", (I32,), I32), 100)
    assert instance.poll()

    assert instance.finish() == 0xFFFFFFFF


def test_an_image_over_the_limit_is_refused(start: Start) -> None:
    with pytest.raises(WasmError, match="memory"):
        start(limit=1 << 16)


def test_exports_are_looked_up_by_name(start: Start) -> None:
    instance = start()

    assert instance.exports(b"add")
    assert not instance.exports(b"subtract")
    with pytest.raises(WasmError, match="does not export 'subtract'"):
        instance.function(b"subtract", (), None)
    with pytest.raises(WasmError, match="not a function"):
        instance.function(b"memory", (), None)


def test_a_guest_that_exports_no_step_is_refused(engine: Engine) -> None:
    import wasmtime

    text = '(module (memory (export "memory") 1) (global (mut i32) (i32.const 0)))'
    parts = split_guest(bytes(wasmtime.wat2wasm(text)))

    with pytest.raises(WasmError, match="belem_step"):
        Instance(
            engine,
            engine.compile(parts.engine),
            engine.compile(parts.image),
            memory_limit_bytes=1 << 20,
        )
