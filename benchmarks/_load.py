"""A load generator for one core: keep-alive connections, one request at a time on each.

    python benchmarks/_load.py PORT PATH CONNECTIONS SECONDS

Prints one JSON object. It counts bytes instead of parsing: every answer of a benchmark is alike.
"""

import asyncio
import json
import statistics
import sys
import time
from typing import cast

import uvloop


class Connection(asyncio.Protocol):
    """Send the next request as soon as the last answer is whole."""

    def __init__(self, request: bytes, latencies: list[float]) -> None:
        self._request = request
        self._latencies = latencies
        self._received = b""
        self._length = 0
        self._sent = 0.0
        self.stopped = False
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._length:
            head, end, _ = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            assert head.startswith(b"HTTP/1.1 200"), head
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            self._length = len(head) + 4 + int(length)
        if len(self._received) < self._length:
            return
        self._latencies.append(time.perf_counter() - self._sent)
        self._received, self._length = b"", 0
        if self.stopped:
            self._transport.close()
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(self.stopped)

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self._request)


async def load(port: int, path: str, connections: int, seconds: float) -> dict[str, float]:
    """Load a server and return what was measured."""
    loop = asyncio.get_running_loop()
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n\r\n".encode()
    latencies: list[float] = []
    made = [
        (await loop.create_connection(lambda: Connection(request, latencies), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    latencies.clear()
    begun = time.perf_counter()
    await asyncio.sleep(seconds)
    elapsed, counted = time.perf_counter() - begun, latencies[:]
    for connection in made:
        connection.stopped = True
    orderly = await asyncio.gather(*(connection.lost for connection in made))
    assert all(orderly), "the server closed a connection"
    steps = statistics.quantiles(counted, n=1000)
    return {
        "requests_per_second": len(counted) / elapsed,
        "p50_ms": steps[499] * 1000,
        "p99_ms": steps[989] * 1000,
    }


if __name__ == "__main__":
    port, path, connections, seconds = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        measured = runner.run(load(int(port), path, int(connections), float(seconds)))
    sys.stdout.write(json.dumps(measured) + "\n")
