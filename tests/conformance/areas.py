"""The areas of the conformance suite, and how a server is asked about one."""

import json
import urllib.request
from pathlib import Path
from typing import Any

__all__ = ["AREAS", "HERE", "ask"]

HERE = Path(__file__).parent
AREAS = tuple(sorted(path.stem for path in (HERE / "cases").glob("*.js")))


def ask(origin: str, area: str) -> dict[str, Any]:  # Any: answers are whatever JSON the cases gave
    """Run the cases of one area on the server and return its answers by name."""
    request = urllib.request.Request(
        f"{origin}/{area}", data=b"the body", headers={"X-Foo": "bar", "Content-Type": "text/x"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        answers: dict[str, Any] = json.load(response)
        return answers
