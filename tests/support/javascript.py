"""Runs JavaScript in the real guest, and brings back values."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from belem.isolates import Capability, Event, Host, Isolate, Limits, LogLine, Program, Reply, Script
from belem.isolates.guests.js import javascript

__all__ = ["Answer", "JavaScript", "Worker"]

_PATIENCE_SECONDS = 60
_VALUE = """
const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);
const run = async (request, env, ctx) => { %s };
export default {
  async fetch(request, env, ctx) {
    try {
      return Response.json({ value: await run(request, env, ctx) });
    } catch (error) {
      return Response.json({ thrown: [error?.name, String(error?.message ?? error)] });
    }
  },
};
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that has been read to its end."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the first header of that name."""
        return next((value for known, value in self.headers if known == name), None)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(slots=True)
class Worker:
    """One isolate with a worker in it."""

    isolate: Isolate
    lines: list[LogLine] = field(default_factory=list[LogLine])

    @property
    def logged(self) -> list[tuple[str, str]]:
        """Return (level, text) of what was printed."""
        return [(line.level, line.text) for line in self.lines]

    async def dispatch(
        self,
        url: str = "http://worker.test/",
        *,
        method: str = "GET",
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | AsyncIterator[bytes] | None = None,
    ) -> Reply:
        """Send a request and return the reply, unread."""
        lines = [f"{method} {url}", *(f"{name}:{value}" for name, value in headers)]
        event = Event("fetch", "\n".join(lines), body)
        return await asyncio.wait_for(self.isolate.dispatch(event), _PATIENCE_SECONDS)

    async def fetch(self, url: str = "http://worker.test/", **request: Any) -> Answer:
        """Send a request and read the answer to its end. `request` is as for `dispatch`."""
        reply = await self.dispatch(url, **request)
        body = await read(reply)
        await asyncio.wait_for(reply.settled(), _PATIENCE_SECONDS)
        status, *lines = reply.head.split("\n")
        code, _, reason = status.partition(" ")
        headers = [
            (name, value) for name, _, value in (line.partition(":") for line in lines if line)
        ]
        return Answer(int(code), reason, headers, body)


async def read(reply: Reply) -> bytes:
    """Return the whole body of a reply."""
    if reply.body is None or isinstance(reply.body, bytes):
        return reply.body or b""
    return b"".join([chunk async for chunk in reply.body])


class JavaScript:
    """The JavaScript guest on a host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @asynccontextmanager
    async def worker(
        self,
        source: str,
        *,
        capabilities: Mapping[str, Capability] | None = None,
        configuration: Mapping[str, Any] | None = None,
        modules: Mapping[str, str] | None = None,
        extensions: Sequence[Script] = (),
    ) -> AsyncGenerator[Worker]:
        """Start a worker whose main module is `source`."""
        program = Program(
            main="worker.js",
            modules={"worker.js": source, **(modules or {})},
            configuration=configuration or {},
        )
        image = await self._host.build(javascript(extensions), program)
        lines: list[LogLine] = list(image.logs)
        isolate = self._host.spawn(image, capabilities or {}, Limits(), lines.append)
        try:
            yield Worker(isolate, lines)
        finally:
            await isolate.aclose()

    async def value(self, body: str, **settings: Any) -> Any:
        """Return what a function body gives, by way of JSON.

        It has `request`, `env`, `ctx`, and `bytes()` and `text()` to encode and decode. `settings`
        are those of `worker`.
        """
        outcome = await self._outcome(body, settings)
        assert "thrown" not in outcome, outcome
        return outcome.get("value")

    async def thrown(self, body: str, **settings: Any) -> list[str]:
        """Return [name, message] of what a function body throws."""
        outcome = await self._outcome(body, settings)
        assert "thrown" in outcome, outcome
        thrown: list[str] = outcome["thrown"]
        return thrown

    async def _outcome(self, body: str, settings: dict[str, Any]) -> dict[str, Any]:
        async with self.worker(_VALUE % body, **settings) as worker:
            answer = await worker.fetch()
            outcome: dict[str, Any] = json.loads(answer.body)
            return outcome
