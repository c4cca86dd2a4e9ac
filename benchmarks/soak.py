"""Does a host stay right and small under mixed workers, faults and redeploys?

    python -m benchmarks.soak [--minutes N] [--processes N]

Clients ask workers of many kinds without pause, among them ones that throw, hang, burn CPU, fill
their memory, flood their log and end streams half way; some clients leave early; every few seconds
a worker is deployed anew. Every answer is checked. At the end stand the answers by kind, what was
wrong, and the host's memory over time: it has no peer but its own first minutes.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks._http import Target, belem
from rich.console import Console
from rich.table import Table

SOURCE = """
let served = 0;
const body = (size) => new ReadableStream({
  async pull(controller) {
    if (size <= 0) return controller.close();
    controller.enqueue(new Uint8Array(Math.min(size, 65536)));
    size -= 65536;
    await scheduler.wait(0);
  } });
export default { async fetch(request, env, ctx) {
  const url = new URL(request.url);
  const kind = url.pathname.slice(1);
  served++;
  switch (kind) {
    case "hello": return new Response("Hello World");
    case "json": return Response.json({ n: Number(url.searchParams.get("n")), list: [1, 2, 3] });
    case "echo": return new Response(request.body);
    case "kv": {
      const key = url.searchParams.get("n");
      await env.NOTES.put(key, key + "!");
      return new Response(await env.NOTES.get(key));
    }
    case "late": ctx.waitUntil(scheduler.wait(50)); return new Response("late");
    case "stream": return new Response(body(400_000));
    case "fresh": return new Response(String(served));
    case "throw": throw new TypeError("on purpose");
    case "hang": return new Promise(() => {});
    case "burn": for (;;);
    case "fill": { const held = []; for (;;) held.push(new Uint8Array(1 << 20).fill(1)); }
    case "log": for (let n = 0; n < 5000; n++) console.log(n); return new Response("logged");
    case "half": return new Response(new ReadableStream({
      async pull(controller) { await scheduler.wait(1); controller.error(new Error("half")); } }));
  }
} };
"""
# What is asked, how often, and the status that has to come; the rest of the check is in `expected`.
KINDS = {
    "hello": (30, 200), "json": (15, 200), "echo": (10, 200), "kv": (10, 200), "late": (5, 200),
    "stream": (5, 200), "fresh": (10, 200), "throw": (5, 500), "hang": (3, 500), "burn": (1, 503),
    "fill": (1, 503), "log": (1, 200), "half": (2, 200), "leave": (4, 0),
}  # fmt: skip
# Faults end the isolate that they are in; a neighbour in it may be told to try again.
WORKERS = {
    "faults": ("throw", "hang", "burn", "fill", "log", "half"),
    "fresh": ("fresh",),
}
_UNLUCKY = {503}


@dataclass
class Findings:
    """What came of it all."""

    answers: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    memory_mib: list[float] = field(default_factory=list[float])


def expected(kind: str, number: int, size: int, answer: bytes) -> bool:
    """Say whether the body is the right one."""
    match kind:
        case "hello":
            return answer == b"Hello World"
        case "json":
            return json.loads(answer) == {"n": number, "list": [1, 2, 3]}
        case "echo":
            return answer == bytes([number % 256]) * size
        case "kv":
            return answer == f"{number}!".encode()
        case "stream":
            return answer == bytes(400_000)
        case "fresh":
            return answer == b"1"
        case "late" | "log":
            return answer == {"late": b"late", "log": b"logged"}[kind]
        case _:
            return True


async def ask(port: int, kind: str) -> str | None:
    """Ask once on a connection of its own; return what was wrong."""
    worker = next((name for name, kinds in WORKERS.items() if kind in kinds), "good")
    number, size = random.randrange(1_000_000), random.choice((10, 70_000, 300_000))
    path = f"/{worker}/{'stream' if kind == 'leave' else kind}?n={number}"
    payload = bytes([number % 256]) * size if kind == "echo" else b""
    method = "POST" if payload else "GET"
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        f"Content-Length: {len(payload)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + payload)
        if kind == "leave":
            await reader.read(random.choice((1, 1000)))
            return None
        raw = await reader.read()
    finally:
        writer.close()
    start, _, body = raw.partition(b"\r\n\r\n")
    status = int(start[9:12] or b"0")
    if b"transfer-encoding: chunked" in start.lower():
        body, whole = unchunked(body)
        if whole == (kind == "half"):
            return f"{kind}: {'whole' if whole else 'cut off'}"
    right = status == KINDS[kind][1] and expected(kind, number, size, body)
    unlucky = worker == "faults" and status in _UNLUCKY
    return None if right or unlucky else f"{kind}: {status} {body[:200]!r}"


def unchunked(data: bytes) -> tuple[bytes, bool]:
    """Return what the chunks hold, and whether the last one came."""
    pieces: list[bytes] = []
    while match := re.match(rb"([0-9a-fA-F]+)\r\n", data):
        length = int(match[1], 16)
        if length == 0:
            return b"".join(pieces), True
        pieces.append(data[match.end() : match.end() + length])
        data = data[match.end() + length + 2 :]
    return b"".join(pieces), False


async def client(port: int, until: float, findings: Findings) -> None:
    names = list(KINDS)
    weights = [weight for weight, _ in KINDS.values()]
    while time.monotonic() < until:
        (kind,) = random.choices(names, weights)
        try:
            async with asyncio.timeout(30):
                wrong = await ask(port, kind)
        except (OSError, TimeoutError, ValueError) as error:
            wrong = f"{kind}: {error!r}"
        findings.answers[kind] += 1
        if wrong is not None:
            findings.wrong.append(wrong)


async def redeploy(command: list[str], until: float) -> None:
    while time.monotonic() < until:
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        await process.wait()
        await asyncio.sleep(5)


async def watch(pids: list[int], until: float, findings: Findings) -> None:
    while time.monotonic() < until:
        findings.memory_mib.append(sum(resident_mib(pid) for pid in pids))
        await asyncio.sleep(2)


def resident_mib(pid: int) -> float:
    match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


async def soak(target: Target, command: list[str], minutes: float) -> Findings:
    findings = Findings()
    until = time.monotonic() + minutes * 60
    async with asyncio.TaskGroup() as group:
        for _ in range(12):
            group.create_task(client(target.port, until, findings))
        group.create_task(redeploy(command, until))
        group.create_task(watch([target.pid], until, findings))
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for name in ("good", *WORKERS):
            home = folder / name
            home.mkdir()
            (home / "worker.js").write_text(SOURCE)
            config: dict[str, object] = {
                "name": name,
                "main": "worker.js",
                "compatibility_date": "2026-11-01",
                "kv_namespaces": [{"binding": "NOTES"}],
                "limits": {"cpu_ms": 500},
            }
            if name == "fresh":
                config["belem"] = {"isolation": "request"}
            (home / "wrangler.json").write_text(json.dumps(config))
        with belem(folder, *(folder / name for name in ("good", *WORKERS))) as target:
            findings = asyncio.run(soak(target, target.deploy(folder / "good"), options.minutes))
    show(findings)
    sys.exit(1 if findings.wrong else 0)


def show(findings: Findings) -> None:
    console = Console()
    table = Table(title=f"{findings.answers.total()} answers, {len(findings.wrong)} wrong")
    table.add_column("kind")
    table.add_column("answers", justify="right")
    for kind, count in findings.answers.most_common():
        table.add_row(kind, str(count))
    console.print(table)
    for wrong in findings.wrong[:20]:
        console.print(wrong, markup=False)
    memory = findings.memory_mib
    tenths = [memory[len(memory) * n // 10 : len(memory) * (n + 1) // 10] for n in range(10)]
    shown = ", ".join(f"{sum(part) / len(part):.0f}" for part in tenths if part)
    console.print(f"memory of the host, MiB, by tenths of the time: {shown}")


if __name__ == "__main__":
    main()
