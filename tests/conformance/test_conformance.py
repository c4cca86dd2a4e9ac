"""Belem answers what workerd answers, case by case; where it must not, the reason stands here."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.areas import AREAS, HERE, ask
from tests.support.processes import free_port, running

# "area/case": why Belem's answer differs from workerd's, and rightly so.
DEVIATIONS: dict[str, str] = {}

_CONFIG = {
    "name": "conformance",
    "main": str(HERE / "worker.js"),
    "compatibility_date": "2026-04-01",
    "kv_namespaces": [{"binding": "KV", "id": "kv"}],
}


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("conformance")
    for path in HERE.rglob("*.js"):
        copy = folder / path.relative_to(HERE)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    (folder / "wrangler.json").write_text(json.dumps({**_CONFIG, "main": "worker.js"}))
    port = free_port()
    belem = str(Path(sys.executable).parent / "belem")
    with running([belem, "dev", ".", "--port", str(port)], folder, os.environ, port=port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def answers(origin: str) -> dict[str, dict[str, Any]]:
    return {area: ask(origin, area) for area in AREAS}


def expected() -> Iterator[tuple[str, str, Any]]:
    for area in AREAS:
        recorded = json.loads((HERE / "answers" / f"{area}.json").read_text())
        for name, answer in recorded.items():
            yield area, name, answer


@pytest.mark.parametrize(
    ("area", "name", "answer"),
    list(expected()),
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_answers_as_workerd(
    area: str, name: str, answer: Any, answers: dict[str, dict[str, Any]]
) -> None:
    same = answers[area].get(name) == answer
    if f"{area}/{name}" in DEVIATIONS:
        assert not same, "the deviation is gone: take it off the list"
    else:
        assert answers[area].get(name) == answer
