"""What a worker sees of the web platform: cases/*.js, each a function and the value it gives.

All cases of an area run in one worker; each is a test of its own.
"""

import asyncio
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from belem.bindings.crypto import Crypto
from belem.isolates import Host
from tests.support.javascript import JavaScript

CASES = Path(__file__).with_name("cases")
SHARED = {name: (CASES / name).read_text() for name in ("given.js", "worker.js")}
AREAS = sorted(path.stem for path in CASES.glob("*.js") if path.name not in SHARED)
HEADERS = [("x-a", "1"), ("cookie", "c=d"), ("x-a", "2")]
NAME = re.compile(r'^  (?:"((?:[^"\\]|\\.)+)"|(\w+)): \[', re.MULTILINE)

# [what it gave, what it should give] by the names of cases
Outcomes = dict[str, tuple[Any, Any]]  # Any: whatever JSON a case gives


def names(area: str) -> list[str]:
    return [quoted or bare for quoted, bare in NAME.findall((CASES / f"{area}.js").read_text())]


async def run(cache_dir: Path, area: str) -> Outcomes:
    modules = {"cases.js": (CASES / f"{area}.js").read_text(), "given.js": SHARED["given.js"]}
    async with (
        Host(cache_dir) as host,
        Crypto() as crypto,
        JavaScript(host).worker(
            SHARED["worker.js"], modules=modules, capabilities={"crypto": crypto}
        ) as worker,
    ):
        answer = await worker.fetch(headers=HEADERS)
        outcomes: Outcomes = json.loads(answer.body)
        return outcomes


@pytest.fixture(scope="module")
def outcomes(cache_dir: Path) -> Callable[[str], Outcomes]:
    @cache
    def once(area: str) -> Outcomes:
        return asyncio.run(run(cache_dir, area))

    return once


@pytest.mark.parametrize(("area", "name"), [(area, name) for area in AREAS for name in names(area)])
def test_case(outcomes: Callable[[str], Outcomes], area: str, name: str) -> None:
    given, expected = outcomes(area)[name]

    assert given == expected


@pytest.mark.parametrize("area", AREAS)
def test_every_case_is_a_test(outcomes: Callable[[str], Outcomes], area: str) -> None:
    assert list(outcomes(area)) == names(area)
