from collections.abc import AsyncIterator

import pytest

from belem.isolates import Event, LogLine
from belem.runtime.control import Binding, Upload, Version
from belem.runtime.control.errors import NoHandlers, ValidationFailed
from belem.runtime.server import Composer, LiveStage
from belem.runtime.server.errors import WorkerUnavailable


def upload(source: str, *, worker: str = "hello", bindings: tuple[Binding, ...] = ()) -> Upload:
    return Upload(worker, "worker.js", {"worker.js": source}, bindings)


HELLO = upload("console.log('loaded'); export default { fetch() { return new Response('hi') } }")


class Stage:
    """A stage, what its workers logged, and how often the daemon was asked for."""

    def __init__(self, composer: Composer) -> None:
        self.logged: list[tuple[str, LogLine]] = []
        self.ai_starts = 0
        self.stage = LiveStage(
            composer,
            port=8787,
            log=lambda worker, line: self.logged.append((worker, line)),
            on_ai=self._on_ai,
        )

    def _on_ai(self) -> None:
        self.ai_starts += 1

    async def deploy(self, made: Upload, number: int = 1) -> None:
        prepared = await self.stage.prepare(made)
        await self.stage.go_live(Version(f"v{number}", number, 0, made), prepared)


@pytest.fixture
async def at(composer: Composer) -> AsyncIterator[Stage]:
    made = Stage(composer)
    yield made
    await made.stage.drain(grace_seconds=1)


async def test_a_worker_is_found_by_host_name(at: Stage) -> None:
    await at.deploy(HELLO)

    route = at.stage.route("hello.localhost:8787", b"/a/b")

    assert route is not None
    assert (route.target.name, route.prefix) == ("hello", b"")


async def test_a_worker_is_found_by_the_first_part_of_the_path(at: Stage) -> None:
    await at.deploy(HELLO)

    route = at.stage.route("127.0.0.1:8787", b"/hello/a")

    assert route is not None
    assert (route.target.name, route.prefix) == ("hello", b"/hello")


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("localhost", b"/"),
        ("localhost", b"/hellos"),
        ("localhost", b"/hell"),
        ("localhost", b"/HELLO/"),
        ("localhost", b"//hello/"),
        ("hello", b"/"),
        ("other.localhost", b"/other"),
    ],
)
async def test_no_other_address_finds_it(at: Stage, host: str, path: bytes) -> None:
    await at.deploy(HELLO)

    assert at.stage.route(host, path) is None


async def test_the_host_name_wins_over_the_path(at: Stage) -> None:
    await at.deploy(HELLO)
    await at.deploy(upload("export default { fetch() {} }", worker="other"))

    route = at.stage.route("hello.localhost", b"/other/")

    assert route is not None
    assert route.target.name == "hello"


async def test_what_the_top_level_logs_is_the_workers(at: Stage) -> None:
    await at.deploy(HELLO)

    assert [(worker, line.text) for worker, line in at.logged] == [("hello", "loaded")]


async def test_an_ai_binding_asks_for_the_daemon(at: Stage) -> None:
    await at.deploy(HELLO)
    assert at.ai_starts == 0

    await at.deploy(
        upload("export default { fetch() {} }", worker="ai", bindings=(Binding("AI", "ai"),))
    )

    assert at.ai_starts == 1


async def test_a_top_level_that_throws_is_refused_with_its_stack(at: Stage) -> None:
    with pytest.raises(ValidationFailed, match="TypeError: no such thing") as caught:
        await at.stage.prepare(upload("throw new TypeError('no such thing')"))

    assert "worker.js:1" in caught.value.message


async def test_a_syntax_error_is_refused(at: Stage) -> None:
    with pytest.raises(ValidationFailed, match="SyntaxError"):
        await at.stage.prepare(upload("export default {"))


async def test_a_worker_without_handlers_is_refused(at: Stage) -> None:
    with pytest.raises(NoHandlers):
        await at.stage.prepare(upload("export const answer = 42"))


async def test_a_broken_worker_says_so_until_its_next_deploy(at: Stage) -> None:
    at.stage.mark_broken("hello")
    route = at.stage.route("hello.localhost", b"/")
    assert route is not None

    with pytest.raises(WorkerUnavailable, match="could not be started"):
        await route.target.dispatch(Event("fetch", "GET http://hello.localhost/"))
    assert dict(at.stage.workers) == {"hello": False}
    await at.deploy(HELLO)

    assert dict(at.stage.workers) == {"hello": True}


async def test_a_removed_worker_is_not_found(at: Stage) -> None:
    await at.deploy(HELLO)

    await at.stage.remove("hello")
    await at.stage.remove("hello")

    assert at.stage.route("hello.localhost", b"/") is None
