"""Tails over HTTP: streamed, kept alive, and closed whatever becomes of the client."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from starlette.types import Message, Scope

from belem.runtime.control import Deployments, SQLiteVersionStore, TailFilter, control_api
from belem.runtime.control.tails import TailResponse
from belem.sdk import Json
from tests.runtime.control.stages import FakeStage, upload

TOKEN = "a-token-for-these-tests"
SCRIPTS = "/client/v4/accounts/any/workers/scripts"


@dataclass
class FakeTail:
    """Hands out what it was given, then ends; or waits for ever."""

    batches: list[Sequence[Mapping[str, Json]]]
    endless: bool = False
    closed: int = 0

    async def take(self) -> Sequence[Mapping[str, Json]]:
        if self.batches:
            return self.batches.pop(0)
        if self.endless:
            await asyncio.get_running_loop().create_future()
        return []

    def close(self) -> None:
        self.closed += 1


@dataclass
class FakeTails:
    tail: FakeTail
    opened: list[tuple[str, TailFilter]] = field(default_factory=list[tuple[str, TailFilter]])

    def open(self, worker: str, filter: TailFilter, /) -> FakeTail:
        self.opened.append((worker, filter))
        return self.tail


@contextlib.asynccontextmanager
async def api(tails: FakeTails | None, folder: Path) -> AsyncGenerator[httpx.AsyncClient, None]:
    async def render(accept: str) -> tuple[bytes, str]:
        return f"rendered for {accept}".encode(), "text/plain; version=1.0.0; charset=utf-8"

    store = SQLiteVersionStore(folder)
    await store.deploy(upload("hello"))
    app = control_api(
        Deployments(store, FakeStage()), token=TOKEN, tails=tails, render_metrics=render
    )
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://control",
        headers={"authorization": f"Bearer {TOKEN}"},
    ) as client:
        yield client
    await store.aclose()


async def test_a_tail_is_lines_of_json_and_closed_at_its_end(tmp_path: Path) -> None:
    tails = FakeTails(FakeTail([[{"outcome": "ok", "text": "a\u2028b"}], [{"dropped": 2}]]))

    async with api(tails, tmp_path) as client:
        response = await client.get(f"{SCRIPTS}/hello/tail?status=ok&method=GET")

    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in response.text.splitlines() if line]
    assert lines == [{"outcome": "ok", "text": "a\u2028b"}, {"dropped": 2}]
    (opened,) = tails.opened
    assert opened == (
        "hello",
        TailFilter(outcomes=frozenset({"ok"}), methods=frozenset({"GET"})),
    )
    assert tails.tail.closed == 1


async def test_an_unknown_worker_is_refused_with_those_that_are_there(tmp_path: Path) -> None:
    tails = FakeTails(FakeTail([]))

    async with api(tails, tmp_path) as client:
        response = await client.get(f"{SCRIPTS}/helo/tail")

    (error,) = response.json()["errors"]
    assert (response.status_code, error["code"]) == (404, 10007)
    assert "'helo'" in error["message"]
    assert "hello" in error["message"]
    assert tails.opened == []


async def test_a_filter_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    async with api(FakeTails(FakeTail([])), tmp_path) as client:
        response = await client.get(f"{SCRIPTS}/hello/tail?status=fine")

    assert response.status_code == 400
    assert "'fine'" in response.json()["errors"][0]["message"]


async def test_a_host_without_tails_has_no_such_route(tmp_path: Path) -> None:
    async with api(None, tmp_path) as client:
        assert (await client.get(f"{SCRIPTS}/hello/tail")).status_code == 404


@pytest.mark.parametrize("path", [f"{SCRIPTS}/hello/tail", "/metrics"])
async def test_watching_needs_the_token(path: str, tmp_path: Path) -> None:
    tails = FakeTails(FakeTail([]))

    async with api(tails, tmp_path) as client:
        response = await client.get(path, headers={"authorization": "Bearer wrong"})

    assert response.status_code == 401
    assert tails.opened == []


async def test_metrics_are_rendered_as_the_client_accepts(tmp_path: Path) -> None:
    async with api(None, tmp_path) as client:
        response = await client.get("/metrics", headers={"accept": "text/x"})

    assert response.text == "rendered for text/x"
    assert response.headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"


SCOPE: Scope = {"type": "http", "asgi": {"spec_version": "2.3"}, "method": "GET", "headers": []}


async def test_a_quiet_tail_sends_empty_lines() -> None:
    beats = asyncio.Event()
    bodies: list[bytes] = []

    async def send(message: Message) -> None:
        bodies.append(message.get("body", b""))
        if bodies.count(b"\n") == 3:
            beats.set()

    async def receive() -> Message:
        await beats.wait()
        return {"type": "http.disconnect"}

    tail = FakeTail([], endless=True)
    await TailResponse(tail, heartbeat_seconds=0.001)(SCOPE, receive, send)

    assert set(bodies) == {b"", b"\n"}
    assert tail.closed == 1


async def test_a_client_that_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belem.runtime.control.tails._STALLED_SECONDS", 0.01)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("nothing is ever set")

    async def send(_: Message) -> None:
        await asyncio.Event().wait()

    tail = FakeTail([], endless=True)
    await TailResponse(tail)(SCOPE, receive, send)

    assert tail.closed == 1
