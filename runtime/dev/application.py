"""What the dev server answers: the worker, or the page that says why it does not run."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse

from belem.runtime.dev.overlay import EVENTS_PATH, render_html, render_text
from belem.runtime.dev.problem import Problem

__all__ = ["Application"]

# Any: ASGI's scope and messages are untyped dictionaries.
_AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]

# A comment this often keeps the event stream alive through proxies.
_HEARTBEAT_SECONDS = 15.0


class Application:
    """One ASGI callable in front of the worker's."""

    def __init__(self, worker: _AsgiApp, name: str) -> None:
        self._worker = worker
        self._name = name
        self._problem: Problem | None = None
        self._mended = asyncio.Event()

    def show(self, problem: Problem | None) -> None:
        """Answer with this problem from now on; with the worker again where there is none."""
        self._problem = problem
        if problem is None:
            self._mended.set()
            self._mended = asyncio.Event()

    def close(self) -> None:
        """Let pages that wait for a mend go, so that the server can stop."""
        self.show(None)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http" and scope["path"] == EVENTS_PATH:
            response: Response = StreamingResponse(
                self._events(),
                media_type="text/event-stream",
                headers={"Cache-Control": "no-store"},
            )
        elif scope["type"] == "http" and self._problem is not None:
            response = _problem_response(self._problem, self._name, Headers(scope=scope))
        else:
            await self._worker(scope, receive, send)
            return
        await response(scope, receive, send)

    async def _events(self) -> Any:  # an async iterator of str
        mended = self._mended
        if self._problem is None:
            mended = asyncio.Event()
            mended.set()
        while True:
            try:
                await asyncio.wait_for(mended.wait(), _HEARTBEAT_SECONDS)
            except TimeoutError:
                yield ": waiting\n\n"
            else:
                yield "data: mended\n\n"
                return


def _problem_response(problem: Problem, worker: str, headers: Headers) -> Response:
    cache = {"Cache-Control": "no-store"}
    if "text/html" in headers.get("accept", ""):
        page = render_html(problem, worker)
        return Response(page, status_code=500, media_type="text/html", headers=cache)
    return Response(render_text(problem), status_code=500, media_type="text/plain", headers=cache)
