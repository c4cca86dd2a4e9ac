"""Tables of JavaScript and what it gives: all of a module's cases run in one worker, each is a test."""

from collections.abc import Mapping
from typing import Any

import pytest

__all__ = ["Cases", "Thrown", "parametrized"]

# name -> (function body, expected value or Thrown)
Cases = Mapping[str, tuple[str, Any]]  # Any: a value is whatever JSON the case gives


class Thrown:
    """What a case throws: the error's name and, where it matters, its message."""

    def __init__(self, name: str, message: str | None = None) -> None:
        self.name = name
        self.message = message

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dict) or "thrown" not in other:
            return False
        _, name, message = other["thrown"]
        return bool(name == self.name and self.message in (None, message))

    def __hash__(self) -> int:
        return hash((self.name, self.message))

    def __repr__(self) -> str:
        return f"Thrown({self.name!r}, {self.message!r})"


def parametrized(cases: Cases) -> pytest.MarkDecorator:
    """Give a test the `name` and the `expected` outcome of each case."""
    rows = [
        (name, expected if isinstance(expected, Thrown) else {"value": expected})
        for name, (_, expected) in cases.items()
    ]
    return pytest.mark.parametrize(("name", "expected"), rows, ids=list(cases))
