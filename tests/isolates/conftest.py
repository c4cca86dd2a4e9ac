"""A host, a tiny JavaScript guest, and a way to run a worker in one line."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from belem.isolates import Capability, Guest, Host, Isolate, Limits, LogLine, Program, Script
from belem.isolates.guests import js

FOLDER = Path(__file__).parent
JS_WASM = Path(js.__file__).with_name("js.wasm")

Spawn = Callable[..., Awaitable[Isolate]]


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One code cache for the run: the engine is compiled once."""
    return tmp_path_factory.mktemp("code") / "cache"


@pytest.fixture(scope="session")
def mini() -> Guest:
    """The real engine with the smallest boot code."""
    boot = Script("mini.js", (FOLDER / "mini.js").read_text())
    return Guest(name="mini", wasm=JS_WASM, scripts=(boot,), stack_bytes=0)


@pytest.fixture
async def host(cache_dir: Path) -> AsyncIterator[Host]:
    async with Host(cache_dir, max_isolates=64) as host:
        yield host


@pytest.fixture
def lines() -> list[LogLine]:
    """What the guests of a test printed."""
    return []


@pytest.fixture
def spawn(host: Host, mini: Guest, lines: list[LogLine]) -> Spawn:
    """Build a worker from the source of its main module, and start an isolate of it."""

    async def start(
        source: str, capabilities: Mapping[str, Capability] | None = None, **limits: float
    ) -> Isolate:
        bounds = Limits(**limits)  # type: ignore[arg-type]  # the names are checked at run time
        program = Program(main="worker.js", modules={"worker.js": source})
        image = await host.build(mini, program, bounds)
        return host.spawn(image, capabilities or {}, bounds, lines.append)

    return start
