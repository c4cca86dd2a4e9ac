"""Which invocations a tail is told of, in the words of Wrangler's options."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.datastructures import QueryParams

from belem.runtime.control.errors import BadTailFilter

__all__ = ["TailFilter", "Watched", "read_filter"]

_LONGEST_VALUE: Final = 1024
_MOST_VALUES: Final = 32
_OUTCOMES: Final[Mapping[str, frozenset[str]]] = {
    "ok": frozenset({"ok"}),
    "error": frozenset(
        {"exception", "exceededCpu", "exceededMemory", "responseStreamDisconnected", "unknown"}
    ),
    "canceled": frozenset({"canceled"}),
}


class _Line(Protocol):
    @property
    def text(self) -> str: ...


class Watched(Protocol):
    """What a filter looks at. Header names are in lower case."""

    @property
    def outcome(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def headers(self) -> Sequence[tuple[str, str]]: ...
    @property
    def lines(self) -> Sequence[_Line]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TailFilter:
    """A filter; what is not said lets everything pass."""

    outcomes: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    version: str | None = None
    header: tuple[str, str] | None = None  # the name, and a part of the value or ""
    search: str | None = None
    sampling_rate: float = 1.0

    def accepts(self, watched: Watched, draw: Callable[[], float] = random.random) -> bool:
        """Decide about one invocation; `draw` gives a number from 0 to 1 to sample by."""
        return (
            (not self.outcomes or watched.outcome in self.outcomes)
            and (not self.methods or watched.method in self.methods)
            and (self.version is None or watched.version == self.version)
            and (self.header is None or _has(watched.headers, *self.header))
            and (self.search is None or any(self.search in line.text for line in watched.lines))
            and (self.sampling_rate >= 1 or draw() < self.sampling_rate)
        )


def read_filter(query: QueryParams) -> TailFilter:
    """Read status, method, version, header, search and sampling_rate from a request's query."""
    outcomes: frozenset[str] = frozenset()
    for status in _values(query, "status"):
        if status not in _OUTCOMES:
            raise BadTailFilter(f"The status is {status!r}; it can be ok, error or canceled.")
        outcomes |= _OUTCOMES[status]
    name, _, value = (_value(query, "header") or "").partition(":")
    return TailFilter(
        outcomes=outcomes,
        methods=frozenset(method.upper() for method in _values(query, "method")),
        version=_value(query, "version"),
        header=(name.strip().lower(), value.strip()) if name.strip() else None,
        search=_value(query, "search"),
        sampling_rate=_rate(_value(query, "sampling_rate")),
    )


def _has(headers: Sequence[tuple[str, str]], name: str, part: str) -> bool:
    return any(name == given and part in value for given, value in headers)


def _rate(text: str | None) -> float:
    if text is None:
        return 1.0
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate <= 1:
        raise BadTailFilter(f"The sampling rate is {text!r}; it must be over 0 and at most 1.")
    return rate


def _value(query: QueryParams, name: str) -> str | None:
    values = _values(query, name)
    if len(values) > 1:
        raise BadTailFilter(f"The filter {name} is given {len(values)} times; it can be once.")
    return values[0] if values else None


def _values(query: QueryParams, name: str) -> list[str]:
    values = query.getlist(name)
    longest = max(map(len, values), default=0)
    if len(values) > _MOST_VALUES or longest > _LONGEST_VALUE:
        raise BadTailFilter(
            f"The filter {name} has {len(values)} values of up to {longest} characters; the limits "
            f"are {_MOST_VALUES} and {_LONGEST_VALUE}."
        )
    return values
