"""What a worker's clients notice while its neighbours misbehave.

    python -m benchmarks.neighbours [--seconds N] [--rate N]

A hello is asked for at a steady rate, first alone, then while other workers of the same host burn
CPU, fill their memory and flood their log, each asked again as soon as it has ended. The whole host
has one core. workerd runs the same files in the same run, one file after another, since it enforces
no limits: with the endless loop, it answers nobody any more.
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from benchmarks._http import Target, belem, free_port, running, workerd_binary
from rich.console import Console
from rich.table import Table

HELLO = "export default { async fetch() { return new Response('Hello World'); } };\n"
NEIGHBOURS = {
    "cpu": "export default { async fetch() { for (;;); } };\n",
    "memory": """
export default { async fetch() {
  const held = [];
  for (;;) held.push(new Uint8Array(1 << 20).fill(1));
} };
""",
    "logs": """
export default { async fetch() {
  for (let n = 0; n < 200_000; n++) console.log("line", n);
  return new Response("done");
} };
""",
}
WORKERD_CONFIG = """
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "hello", worker = .hello), (name = "bad", worker = .bad)],
  sockets = [
    (name = "http", address = "127.0.0.1:PORT", http = (), service = "hello"),
    (name = "other", address = "127.0.0.1:OTHER", http = (), service = "bad")
  ]
);
const hello :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "hello.js")], compatibilityDate = "2026-11-01");
const bad :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "BAD.js")], compatibilityDate = "2026-11-01");
"""
_PATIENCE_SECONDS = 2.0


async def ask(port: int, path: str, *, patience_seconds: float) -> float | None:
    """Return the milliseconds until the whole answer, None without a good one in time."""
    started = time.perf_counter()
    try:
        async with asyncio.timeout(patience_seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(
                    f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
                )
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    return (time.perf_counter() - started) * 1000 if b" 200 " in answer[:20] else None


async def misbehave(port: int, path: str) -> None:
    """Ask a bad worker again and again."""
    while True:
        await ask(port, path, patience_seconds=60)
        await asyncio.sleep(0.01)


async def victim(
    port: int, path: str, bad: Sequence[tuple[int, str]], rate: float, seconds: float
) -> Sequence[float | None]:
    """Ask for the hello at a rate that does not wait for its answers."""
    neighbours = [asyncio.create_task(misbehave(*where)) for where in bad]
    await asyncio.sleep(0.5)
    asked: list[asyncio.Task[float | None]] = []
    for number in range(round(rate * seconds)):
        asked.append(asyncio.create_task(ask(port, path, patience_seconds=_PATIENCE_SECONDS)))
        await asyncio.sleep(max(0.0, 0.5 / rate if number % 2 else 1.5 / rate))
    answers = await asyncio.gather(*asked)
    for task in neighbours:
        task.cancel()
    await asyncio.gather(*neighbours, return_exceptions=True)
    return answers


@contextlib.contextmanager
def workerd(folder: Path, bad: str) -> Generator[tuple[Target, int], None, None]:
    """Serve the hello and one bad worker, each on a port of its own, from one workerd."""
    port, other = free_port(), free_port()
    text = WORKERD_CONFIG.replace("PORT", str(port)).replace("OTHER", str(other))
    (folder / f"{bad}.capnp").write_text(text.replace("BAD", bad))
    with running([str(workerd_binary()), "serve", f"{bad}.capnp"], port, folder) as pid:
        yield Target(port, pid), other


def shown(answers: Sequence[float | None]) -> Sequence[str]:
    """Return p50, p99 and the share that was answered."""
    good = sorted(answer for answer in answers if answer is not None)
    share = f"{100 * len(good) / len(answers):.1f} %"
    if len(good) < 2:
        return "", "", share
    return f"{statistics.median(good):.1f}", f"{good[int(len(good) * 0.99)]:.1f}", share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rate", type=float, default=200)
    options = parser.parse_args()
    table = Table(title=f"a hello at {options.rate:g} requests/s beside bad neighbours, one core")
    for heading in ("server", "neighbours", "p50 ms", "p99 ms", "answered"):
        table.add_column(
            heading, justify="left" if heading in ("server", "neighbours") else "right"
        )
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for name, source in {"hello": HELLO, **NEIGHBOURS}.items():
            (folder / f"{name}.js").write_text(source)
        paths = [folder / f"{name}.js" for name in ("hello", *NEIGHBOURS)]
        with belem(folder, *paths) as ours:
            cases = {"none": [], **{name: [name] for name in NEIGHBOURS}, "all": list(NEIGHBOURS)}
            for case, names in cases.items():
                bad = [(ours.port, f"/{name}/") for name in names]
                answers = asyncio.run(
                    victim(ours.port, ours.path, bad, options.rate, options.seconds)
                )
                table.add_row("belem", case, *shown(answers))
        for name in NEIGHBOURS:
            with workerd(folder, name) as (theirs, other):
                answers = asyncio.run(
                    victim(theirs.port, "/", [(other, "/")], options.rate, options.seconds)
                )
                table.add_row("workerd", name, *shown(answers))
    Console().print(table)


if __name__ == "__main__":
    main()
