import asyncio
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from belem.runtime.dev.application import Application
from belem.runtime.dev.overlay import EVENTS_PATH
from belem.runtime.dev.problem import Problem

PROBLEM = Problem("Syntax error", "Unexpected <token>", "src/a.ts:2:5", "> 2 | x < y")


@pytest.fixture
def application() -> Application:
    async def worker(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("the worker")(scope, receive, send)

    return Application(worker, "my-worker")


def client(application: Application) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=application)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def test_the_worker_answers_while_there_is_no_problem(application: Application) -> None:
    async with client(application) as http:
        response = await http.get("/")

    assert (response.status_code, response.text) == (200, "the worker")


async def test_a_browser_gets_a_page_with_everything_escaped(application: Application) -> None:
    application.show(PROBLEM)
    async with client(application) as http:
        response = await http.get("/any/path", headers={"Accept": "text/html,*/*"})

    assert response.status_code == 500
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "Unexpected &lt;token&gt;" in response.text
    assert "src/a.ts:2:5" in response.text
    assert "x &lt; y" in response.text
    assert "my-worker" in response.text


async def test_code_gets_plain_text(application: Application) -> None:
    application.show(PROBLEM)
    async with client(application) as http:
        response = await http.post("/", json={})

    assert response.status_code == 500
    assert response.text == "Syntax error: Unexpected <token>\nsrc/a.ts:2:5\n> 2 | x < y\n"


async def test_the_worker_is_back_after_the_mend(application: Application) -> None:
    application.show(PROBLEM)
    application.show(None)
    async with client(application) as http:
        response = await http.get("/")

    assert response.text == "the worker"


async def test_a_waiting_page_hears_of_the_mend(application: Application) -> None:
    application.show(PROBLEM)
    async with client(application) as http:
        waiting = asyncio.create_task(http.get(EVENTS_PATH))
        await asyncio.sleep(0)

        application.show(None)
        response = await waiting

    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text == "data: mended\n\n"


async def test_a_page_that_asks_too_late_hears_at_once(application: Application) -> None:
    async with client(application) as http:
        response = await http.get(EVENTS_PATH)

    assert response.text == "data: mended\n\n"
