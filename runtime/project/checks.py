"""Check the values of a config file: each refusal names file, key, value and what is allowed."""

import difflib
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar, cast

from belem.runtime.project.errors import ConfigError
from belem.sdk import Json

__all__ = [
    "Checker",
    "binding_name",
    "boolean",
    "describe",
    "did_you_mean",
    "integer",
    "list_of",
    "plain",
    "table",
    "text",
    "worker_name",
]

T = TypeVar("T")
_WORKER_NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,62}")
_BINDING_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,127}")
_SHOWN = 60


class Checker:
    """Knows the file that is being checked and gathers warnings about it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.warnings: list[str] = []

    def refuse(self, key: str, value: Json, allowed: str) -> NoReturn:
        """Raise the error for a value that is not allowed."""
        raise ConfigError(f"{self.file}: `{key}` is {describe(value)}; it must be {allowed}.")

    def warn(self, message: str) -> None:
        """Keep a warning, once."""
        if message not in self.warnings:
            self.warnings.append(message)

    def optional(
        self, values: Mapping[str, Json], key: str, at: str, check: "Check[T]", default: T
    ) -> T:
        """Return the checked value of a key, or the default if the key is not there."""
        return check(self, _join(at, key), values[key]) if key in values else default

    def unknown_keys(
        self, values: Mapping[str, Json], at: str, known: Collection[str]
    ) -> list[str]:
        """Warn of each key that is not known; return those that are."""
        for key in values:
            if key not in known:
                hint = did_you_mean(key, known)
                self.warn(f"{self.file.name}: unknown key `{_join(at, key)}`{hint}; it is ignored.")
        return [key for key in values if key in known]


Check = Callable[[Checker, str, Json], T]


def text(checker: Checker, key: str, value: Json) -> str:
    """Check a string that is not empty."""
    if not isinstance(value, str) or not value.strip():
        checker.refuse(key, value, "a string that is not empty")
    if "\0" in value:
        checker.refuse(key, value, "a string without NUL characters")
    return value


def boolean(checker: Checker, key: str, value: Json) -> bool:
    """Check true or false."""
    if not isinstance(value, bool):
        checker.refuse(key, value, "true or false")
    return value


def integer(low: int, high: int) -> Check[int]:
    """Make a check for whole numbers from low to high."""

    def check(checker: Checker, key: str, value: Json) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            checker.refuse(key, value, f"a whole number from {low} to {high}")
        return value

    return check


def table(checker: Checker, key: str, value: Json) -> Mapping[str, Json]:
    """Check an object."""
    if not isinstance(value, Mapping):
        checker.refuse(key, value, "an object")
    return value


def list_of(check: Check[T]) -> Check[tuple[T, ...]]:
    """Make a check for arrays whose items pass a check."""

    def check_list(checker: Checker, key: str, value: Json) -> tuple[T, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            checker.refuse(key, value, "an array")
        return tuple(check(checker, f"{key}[{index}]", item) for index, item in enumerate(value))

    return check_list


def worker_name(checker: Checker, key: str, value: Json) -> str:
    """Check the name of a worker."""
    if not isinstance(value, str) or _WORKER_NAME.fullmatch(value) is None:
        allowed = "1 to 63 lower-case letters, digits, `-` and `_`, not starting with `-`"
        checker.refuse(key, value, allowed)
    return value


def binding_name(checker: Checker, key: str, value: Json) -> str:
    """Check a name that becomes a property of `env`."""
    if not isinstance(value, str) or _BINDING_NAME.fullmatch(value) is None:
        allowed = "a JavaScript identifier of at most 128 letters, digits, `_` and `$`"
        checker.refuse(key, value, allowed)
    return value


def plain(checker: Checker, key: str, value: object) -> Json:
    """Check that a value is one that JSON has: TOML's dates are not."""
    if isinstance(value, float) and not math.isfinite(value):
        checker.refuse(key, str(value), "a finite number")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        members = cast("dict[object, object]", value)
        return {str(name): plain(checker, f"{key}.{name}", item) for name, item in members.items()}
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [plain(checker, f"{key}[{index}]", item) for index, item in enumerate(items)]
    checker.refuse(key, str(value), "a value that JSON has; write a date in quotes")


def describe(value: Json) -> str:
    """Show a value as an error names it: short, and in JSON's words."""
    if isinstance(value, str):
        shown = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
        return f'"{shown}"'
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, Sequence):
        return "an array"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)[:_SHOWN]


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return ", did you mean …?" in brackets, or nothing if no known word is near."""
    near = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.7)
    return f" (did you mean `{near[0]}`?)" if near else ""


def _join(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key
