"""A small HTTP/1.1 server on loopback that shows what reached it and answers byte for byte as
told."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Received:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name]
        assert len(found) <= 1, f"{name} came more than once"
        return found[0] if found else None


Reply = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


def response(status: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers]
    if not any(header.lower().startswith(("content-length", "transfer-")) for header in headers):
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@dataclass(slots=True)
class Origin:
    """Answer each path as `replies` says; unknown ones with 404."""

    replies: dict[str, bytes | Reply] = field(default_factory=dict[str, bytes | Reply])
    received: list[Received] = field(default_factory=list[Received])
    tasks: list[asyncio.Task[None]] = field(default_factory=list["asyncio.Task[None]"])
    connections: int = 0
    port: int = 0

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.tasks.append(task)
        try:
            while (received := await _read(reader)) is not None:
                self.received.append(received)
                path = received.target.partition("?")[0]
                reply = self.replies.get(path, response("404 Not Found"))
                if isinstance(reply, bytes):
                    writer.write(reply)
                else:
                    await reply(received, writer)
                await writer.drain()
                if writer.is_closing():
                    break
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def running_origin() -> AsyncGenerator[Origin, None]:
    origin = Origin()
    server = await asyncio.start_server(origin.serve, "127.0.0.1", 0)
    origin.port = server.sockets[0].getsockname()[1]
    try:
        yield origin
    finally:
        server.close()
        for task in origin.tasks:
            task.cancel()
        await asyncio.gather(*origin.tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    names = {name.lower(): value for name, value in headers}
    body = b""
    if names.get("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    elif "content-length" in names:
        body = await reader.readexactly(int(names["content-length"]))
    return Received(method, target, headers, body)
