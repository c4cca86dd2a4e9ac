"""Runs JavaScript in the real guest, and brings back values."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belem.isolates import Capability, Event, Host, Isolate, Limits, LogLine, Program, Reply, Script
from belem.isolates.guests.js import javascript

__all__ = ["Answer", "JavaScript", "Worker", "run_cases"]

_PATIENCE_SECONDS = 60
_STATEMENT = re.compile(r"\s*(?:async function|class|const|for|if|let|return|throw|try)\b")
_CASES = """
const plain = (value) => {
  if (value === undefined) return "(undefined)";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (value instanceof Uint8Array) return { bytes: [...value] };
  if (value instanceof ArrayBuffer) return { bytes: [...new Uint8Array(value)] };
  return Array.isArray(value) ? value.map(plain) : value;
};
const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);
const cases = [
%s
];
export default {
  async fetch(request, env, ctx) {
    const outcomes = [];
    for (const run of cases) {
      try {
        const hung = scheduler.wait(10_000).then(() => Promise.reject(new Error("the case hung")));
        outcomes.push({ value: plain(await Promise.race([run(request, env, ctx), hung])) });
      } catch (error) {
        const message = String(error?.message ?? error);
        outcomes.push({ thrown: [error?.constructor?.name, error?.name, message] });
      }
    }
    return Response.json(outcomes);
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
    ) -> AsyncIterator[Worker]:
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

    async def outcomes(self, bodies: Sequence[str], **settings: Any) -> list[dict[str, Any]]:
        """Run function bodies in turn, each with `request`, `env` and `ctx`; {"value"} or {"thrown"} for each.

        A body that begins with no statement's keyword is an expression. `bytes()` and `text()` encode and decode.
        """
        request = settings.pop("request", {})
        functions = [f"async (request, env, ctx) => {{ {_statement(body)} }}," for body in bodies]
        async with self.worker(_CASES % "\n".join(functions), **settings) as worker:
            answer = await worker.fetch(**request)
            found: list[dict[str, Any]] = json.loads(answer.body)
            return found

    async def value(self, body: str, **settings: Any) -> Any:
        """Return what one function body returns, by way of JSON."""
        [outcome] = await self.outcomes([body], **settings)
        assert "value" in outcome, outcome
        return outcome["value"]

    async def thrown(self, body: str, **settings: Any) -> list[str]:
        """Return [class, name, message] of what one function body throws."""
        [outcome] = await self.outcomes([body], **settings)
        assert "thrown" in outcome, outcome
        thrown: list[str] = outcome["thrown"]
        return thrown


def run_cases(cache_dir: Path, cases: Mapping[str, str], **settings: Any) -> dict[str, dict[str, Any]]:
    """Run many function bodies in one worker, for tests that look at one outcome each."""

    async def run() -> dict[str, dict[str, Any]]:
        async with Host(cache_dir) as host:
            outcomes = await JavaScript(host).outcomes(list(cases.values()), **settings)
            return dict(zip(cases, outcomes, strict=True))

    return asyncio.run(run())


def _statement(body: str) -> str:
    return body if _STATEMENT.match(body) else f"return ({body});"
