"""Do what README and docs tell their readers to do, in a fresh folder, with real processes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.pages import Command, File, read_steps
from tests.support.processes import free_port, running

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_SERVERS = re.compile(r"^belem (dev|serve)\b")
_SET_UP = re.compile(r"^(git|make|pip|python3? -m venv)\b")


@pytest.fixture
def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "NO_COLOR": "1"}


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_tells_the_truth(
    page: Path, tmp_path: Path, environment: dict[str, str], servers: ExitStack
) -> None:
    ports = {"8787": str(free_port()), "8788": str(free_port())}
    for step in read_steps(page):
        if isinstance(step, File):
            (tmp_path / step.name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / step.name).write_text(step.text)
        else:
            run(step, tmp_path, environment, ports, servers)


def run(
    command: Command,
    folder: Path,
    environment: dict[str, str],
    ports: dict[str, str],
    servers: ExitStack,
) -> None:
    """Run one command of a page; a server runs on until the page ends."""
    if _SET_UP.match(command.line):
        return  # what `make test` and CI have done already
    line = command.line
    for written, real in ports.items():
        line = line.replace(written, real)
    if _SERVERS.match(line):
        options = f" --port {ports['8787']}"
        if line.startswith("belem serve"):
            options += f" --control-port {ports['8788']}"
        servers.enter_context(
            running([*(line + options).split()], folder, environment, port=int(ports["8787"]))
        )
        return
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    actual = done.stdout
    for written, real in ports.items():
        actual = actual.replace(real, written)
    assert done.returncode == 0, f"{command.line}\n{done.stdout}{done.stderr}"
    assert command.prints(actual), f"{command.line}\nprinted {actual!r}, not {command.output!r}"
