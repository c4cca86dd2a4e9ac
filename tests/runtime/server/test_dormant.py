"""Workers that are deployed and not in memory."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping

import pytest

from belem.isolates import Event
from belem.runtime.control import Binding, Upload, Version, WorkerSummary
from belem.runtime.server import Composer, LiveStage, LiveWorker, dormant, stage
from belem.runtime.server.dormant import DormantWorker
from belem.runtime.server.errors import WorkerUnavailable
from belem.sdk.errors import SystemFault


def upload(name: str, source: str) -> Upload:
    return Upload(name, "worker.js", {"worker.js": source})


def answering(name: str) -> Upload:
    return upload(name, f"export default {{ fetch() {{ return new Response('{name}') }} }}")


class Kept:
    """Versions that are kept elsewhere, and how often each was loaded."""

    def __init__(self, *uploads: Upload) -> None:
        self.versions = {made.worker: Version(f"v-{made.worker}", 1, 0, made) for made in uploads}
        self.loads: list[str] = []
        self.fails = False
        self.readable = asyncio.Event()
        self.readable.set()

    async def load(self, name: str) -> Version | None:
        self.loads.append(name)
        await self.readable.wait()
        if self.fails:
            raise SystemFault("The disk is away.")
        return self.versions.get(name)

    def summaries(
        self, bindings: Mapping[str, tuple[Binding, ...]] | None = None
    ) -> list[WorkerSummary]:
        return [
            WorkerSummary(name, version.id, 1, 0, 0, (bindings or {}).get(name, ()))
            for name, version in self.versions.items()
        ]


class At:
    def __init__(self, composer: Composer) -> None:
        self.ai_starts = 0
        self.stage = LiveStage(
            composer, port=8787, log=lambda worker, line: None, on_ai=self._on_ai, most_awake=1
        )

    def _on_ai(self) -> None:
        self.ai_starts += 1

    async def ask(self, name: str) -> str:
        route = self.stage.route(f"{name}.localhost", b"/")
        assert route is not None
        reply = await route.target.dispatch(Event("fetch", f"GET http://{name}.localhost/"))
        assert isinstance(reply.body, bytes)
        await reply.settled()
        return reply.body.decode()


@pytest.fixture
async def at(composer: Composer) -> AsyncIterator[At]:
    made = At(composer)
    yield made
    await made.stage.drain(grace_seconds=1)


async def test_the_first_request_brings_a_worker_in_once_for_all_who_wait(
    at: At, composer: Composer
) -> None:
    kept = Kept(answering("a"), answering("b"))
    at.stage.enlist(kept.summaries(), kept.load)

    assert at.stage.workers == {"a": True, "b": True}
    assert await asyncio.gather(*(at.ask("a") for _ in range(1000))) == ["a"] * 1000
    assert await at.ask("a") == "a"
    assert kept.loads == ["a"]
    assert composer.host.counts()["images_built"] in (0, 1)  # this run's cache may have it


async def test_a_client_that_leaves_does_not_end_the_wait_of_others(at: At) -> None:
    kept = Kept(answering("a"))
    at.stage.enlist(kept.summaries(), kept.load)

    left = asyncio.create_task(at.ask("a"))
    stayed = asyncio.create_task(at.ask("a"))
    await asyncio.sleep(0)
    left.cancel()

    assert await stayed == "a"
    assert kept.loads == ["a"]


async def test_a_deploy_is_faster_than_a_worker_on_its_way_in(at: At) -> None:
    kept = Kept(answering("a"))
    at.stage.enlist(kept.summaries(), kept.load)
    newer = upload("a", "export default { fetch() { return new Response('newer') } }")

    kept.readable.clear()
    waiting = asyncio.create_task(at.ask("a"))
    await asyncio.sleep(0)
    await at.stage.go_live(Version("v2", 2, 0, newer), await at.stage.prepare(newer))
    kept.readable.set()

    assert await waiting == "newer"
    assert await at.ask("a") == "newer"


async def test_a_worker_that_cannot_run_is_said_once_and_not_tried_by_every_request(
    at: At, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(upload("a", "throw new Error('at the top')"))
    at.stage.enlist(kept.summaries(), kept.load)

    for _ in range(3):
        with pytest.raises(WorkerUnavailable, match="could not be started"):
            await at.ask("a")

    assert at.stage.workers == {"a": False}
    assert kept.loads == ["a"]
    assert [record.message for record in caplog.records] == ["worker_failed_to_start"]


async def test_a_broken_worker_runs_from_its_next_deploy(at: At) -> None:
    kept = Kept(upload("a", "throw new Error('at the top')"))
    at.stage.enlist(kept.summaries(), kept.load)
    with pytest.raises(WorkerUnavailable):
        await at.ask("a")
    repaired = answering("a")

    await at.stage.go_live(Version("v2", 2, 0, repaired), await at.stage.prepare(repaired))

    assert await at.ask("a") == "a"
    assert at.stage.workers == {"a": True}


async def test_what_could_not_be_read_is_tried_again(
    at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dormant, "_FIRST_RETRY_SECONDS", 0.0)
    kept = Kept(answering("a"))
    at.stage.enlist(kept.summaries(), kept.load)
    kept.fails = True
    with pytest.raises(WorkerUnavailable, match="could not be started"):
        await at.ask("a")

    kept.fails = False

    assert await at.ask("a") == "a"


async def test_each_failure_doubles_the_wait_for_the_next_try() -> None:
    now_s, tries = 100.0, list[float]()

    async def wake(_: DormantWorker) -> LiveWorker:
        tries.append(now_s)
        raise SystemFault("The disk is away.")

    worker = DormantWorker("a", "v1", wake, now_s=lambda: now_s)
    for _ in range(2_000):
        with pytest.raises(WorkerUnavailable):
            await worker.dispatch(Event("fetch", "GET http://a.localhost/"))
        now_s += 0.5

    waits = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]


async def test_a_request_whose_worker_went_to_rest_meanwhile_is_answered(
    at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_REST_EVERY_SECONDS", 0.02)
    kept = Kept(answering("a"), answering("b"))
    at.stage.enlist(kept.summaries(), kept.load)
    assert await at.ask("a") == "a"
    routed = at.stage.route("a.localhost", b"/")
    assert routed is not None
    assert await at.ask("b") == "b"
    async with asyncio.timeout(10):
        while at.stage.route("a.localhost", b"/") == routed:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.02)

    late = await routed.target.dispatch(Event("fetch", "GET http://a.localhost/"))

    assert late.body == b"a"


async def test_one_that_was_deleted_meanwhile_is_gone(at: At) -> None:
    kept = Kept(answering("a"))
    at.stage.enlist(kept.summaries(), kept.load)

    kept.readable.clear()
    waiting = asyncio.create_task(at.ask("a"))
    await asyncio.sleep(0)
    await at.stage.remove("a")
    kept.readable.set()

    with pytest.raises(WorkerUnavailable, match="not there any more"):
        await waiting


async def test_the_daemon_is_started_for_a_worker_that_will_ask_it(at: At) -> None:
    kept = Kept(answering("a"), answering("b"))

    at.stage.enlist(kept.summaries({"b": (Binding("AI", "ai"),)}), kept.load)

    assert at.ai_starts == 1


async def test_workers_over_the_number_go_to_rest_and_come_back(
    at: At, composer: Composer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_REST_EVERY_SECONDS", 0.02)
    kept = Kept(answering("a"), answering("b"), answering("c"))
    at.stage.enlist(kept.summaries(), kept.load)
    for name in "abc":
        assert await at.ask(name) == name

    async with asyncio.timeout(10):
        while composer.host.isolates > 1:  # noqa: ASYNC110  # isolates count, and do not tell
            await asyncio.sleep(0.02)

    assert await at.ask("c") == "c"
    assert await at.ask("a") == "a"
    assert kept.loads == ["a", "b", "c", "a"]


async def test_a_crawl_over_all_workers_puts_the_earlier_ones_to_rest_meanwhile(
    at: At, composer: Composer
) -> None:
    kept = Kept(*(answering(name) for name in "abcdef"))
    at.stage.enlist(kept.summaries(), kept.load)
    for name in "abcdef":
        assert await at.ask(name) == name

    async with asyncio.timeout(10):
        while composer.host.isolates > 1:  # noqa: ASYNC110  # isolates count, and do not tell
            await asyncio.sleep(0.02)
