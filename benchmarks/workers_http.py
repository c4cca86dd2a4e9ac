"""Workers of several kinds through HTTP, each beside the same file in workerd, in one run.

    python -m benchmarks.workers_http [--seconds N] [--rounds N] [--case NAME]

A hello with 32 and with 64 connections, JSON of 10 kB, a template of 6 kB, and a hello for which
each request has an isolate of its own. A read from KV has no peer: workerd alone has no KV.
The server has one core and the load another; the ratios are medians of the rounds.
"""

import argparse
import contextlib
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._http import Target, belem, load, measure, workerd
from rich.console import Console
from rich.table import Table

HELLO = "export default { async fetch() { return new Response('Hello World'); } };\n"
JSON = """
const items = Array.from({ length: 140 }, (_, id) => (
  { id, name: `item ${id}`, tags: ["first", "second"], price: id * 1.5, stock: id % 7 }));
export default { async fetch() { return Response.json({ items }); } };
"""
TEMPLATE = """
const rows = Array.from({ length: 60 }, (_, id) => ({ id, name: `Name of ${id} & <others>` }));
const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const page = (title) => `<!doctype html><title>${escape(title)}</title><table>${rows
  .map(({ id, name }) => `<tr class="row"><td>${id}</td><td><a href="/items/${id}">${
    escape(name)}</a></td></tr>`).join("\\n")}</table>`;
export default { async fetch(request) {
  const { searchParams } = new URL(request.url);
  return new Response(page(searchParams.get("title") ?? "Items"),
    { headers: { "content-type": "text/html" } });
} };
"""
KV = """
export default { async fetch(request, { NOTES }) {
  const kept = await NOTES.get("note");
  if (kept === null) await NOTES.put("note", "Hello World");
  return new Response(kept);
} };
"""


@dataclass(frozen=True)
class Case:
    """A worker, how it is configured here, and the load on it."""

    name: str
    source: str
    connections: int = 32
    isolation: str = "shared"
    kv: bool = False


CASES = (
    Case("hello", HELLO),
    Case("hello, 64 connections", HELLO, connections=64),
    Case("JSON of 10 kB", JSON),
    Case("template of 6 kB", TEMPLATE),
    Case("hello, isolate per request", HELLO, isolation="request"),
    Case("KV get", KV, kv=True),
)


def project(folder: Path, number: int, case: Case) -> Path:
    """Write a worker as wrangler would have it."""
    home = folder / f"case-{number}"
    home.mkdir()
    (home / "worker.js").write_text(case.source)
    (folder / f"case-{number}.js").write_text(case.source)  # workerd embeds from its own folder
    config: dict[str, object] = {
        "name": home.name,
        "main": "worker.js",
        "compatibility_date": "2026-11-01",
    }
    if case.isolation != "shared":
        config["belem"] = {"isolation": case.isolation}
    if case.kv:
        config["kv_namespaces"] = [{"binding": "NOTES", "id": "notes"}]
    (home / "wrangler.json").write_text(json.dumps(config))
    return home


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", help="only the workers whose name contains this")
    options = parser.parse_args()
    cases = [case for case in CASES if options.case is None or options.case in case.name]
    table = Table(title="workers through HTTP, one core")
    for heading in ("worker", "requests/s", "workerd", "ratio", "p99 ms", "CPU us", "CPU ratio"):
        table.add_column(heading, justify="left" if heading == "worker" else "right")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        homes = [project(folder, number, case) for number, case in enumerate(cases)]
        with belem(folder, *homes) as ours:
            for case, home in zip(cases, homes, strict=True):
                here = Target(ours.port, ours.pid, f"/{home.name}/")
                with contextlib.ExitStack() as stack:
                    peer = None
                    if not case.kv:
                        peer = stack.enter_context(workerd(folder, folder / f"{home.name}.js"))
                    table.add_row(
                        case.name, *row(case, here, peer, options.rounds, options.seconds)
                    )
    Console().print(table)


def row(
    case: Case, ours: Target, peer: Target | None, rounds: int, seconds: float
) -> Sequence[str]:
    """Measure in alternating rounds and return a row's figures."""
    for target in (ours, *([peer] if peer else [])):
        load(target, case.connections, 1)
    mine: list[Mapping[str, float]] = []
    theirs: list[Mapping[str, float]] = []
    for _ in range(rounds):
        mine.append(measure(ours, case.connections, seconds))
        if peer is not None:
            theirs.append(measure(peer, case.connections, seconds))
    rate, p99, cpu = (
        statistics.median(run[name] for run in mine)
        for name in ("requests_per_second", "p99_ms", "cpu_us")
    )
    if not theirs:
        return f"{rate:.0f}", "", "", f"{p99:.2f}", f"{cpu:.0f}", ""
    peer_rate = statistics.median(run["requests_per_second"] for run in theirs)
    peer_cpu = statistics.median(run["cpu_us"] for run in theirs)
    return (
        f"{rate:.0f}", f"{peer_rate:.0f}", f"{rate / peer_rate:.2f}", f"{p99:.2f}", f"{cpu:.0f}",
        f"{cpu / peer_cpu:.2f}",
    )  # fmt: skip


if __name__ == "__main__":
    main()
