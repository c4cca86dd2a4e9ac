"""Lead back from transformed text to its source, when the transform wrote no source map.

The type stripper drops tokens (types, unused imports), adds a few (enum bodies, parameter
properties) and lays the rest out anew, but never reorders them. So walking both token lists side by
side, skipping what only one of them has, finds for each token of the output the one it came from.
It is done when the first stack asks.
"""

from bisect import bisect_left, bisect_right
from functools import cached_property

from belem.runtime.project.positions import Position
from belem.runtime.project.tokens import Kind, Lines, Token, tokenize

__all__ = ["Alignment"]

# How many tokens in a row must be the same before a gap is believed to end there, longest first;
# and how many tokens of the output may be ones that the transform added.
_RUNS = (4, 3, 2)
_ADDED = 12


class Alignment:
    """The source map of a text that was made from `original` by dropping and adding tokens."""

    def __init__(self, file: str, original: str, transformed: str) -> None:
        self._file = file
        self._original = original
        self._transformed = transformed

    def original(self, line: int, column: int) -> Position | None:
        """Return where the token at this place of the transformed text came from."""
        starts, origins = self._pairs
        index = bisect_right(starts, self._lines[0].offset(line, column)) - 1
        if not starts:
            return None
        # Before the first token that is known, the first is the nearest.
        place = self._lines[1].at(origins[max(index, 0)])
        return Position(self._file, *place)

    @cached_property
    def _lines(self) -> tuple[Lines, Lines]:
        return Lines(self._transformed), Lines(self._original)

    @cached_property
    def _pairs(self) -> tuple[list[int], list[int]]:
        """Offsets in the transformed text and, beside them, in the original; both ascending."""
        old, new = list(tokenize(self._original)), list(tokenize(self._transformed))
        pairs = _align([_key(token) for token in old], [_key(token) for token in new])
        return [new[n].start for n, _ in pairs], [old[o].start for _, o in pairs]


def _key(token: Token) -> str:
    """Return what stays when the stripper writes a token anew: it prefers double quotes."""
    return token.text[1:-1] if token.kind is Kind.STRING else token.text


def _align(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    runs = {length: _places(old, length) for length in _RUNS}
    pairs: list[tuple[int, int]] = []
    o = n = 0
    while o < len(old) and n < len(new):
        if old[o] == new[n]:
            pairs.append((n, o))
            o, n = o + 1, n + 1
            continue
        jump = _next_run(new, n, o, runs)
        if jump is None:
            n += 1
        else:
            n, o = jump
    return pairs


def _places(keys: list[str], length: int) -> dict[tuple[str, ...], list[int]]:
    places: dict[tuple[str, ...], list[int]] = {}
    for index in range(len(keys) - length + 1):
        places.setdefault(tuple(keys[index : index + length]), []).append(index)
    return places


def _next_run(
    new: list[str], n: int, o: int, runs: dict[int, dict[tuple[str, ...], list[int]]]
) -> tuple[int, int] | None:
    """Return where both lists go on alike, leaving out as little as may be of either."""
    for length, places in runs.items():
        best: tuple[int, int, int] | None = None
        for added in range(min(_ADDED, len(new) - n - length + 1)):
            found = places.get(tuple(new[n + added : n + added + length]), [])
            index = bisect_left(found, o)
            if index < len(found):
                # A token added counts as much as one dropped: the nearest place where both agree
                # wins.
                cost = found[index] - o + added
                if best is None or cost < best[0]:
                    best = (cost, n + added, found[index])
        if best is not None:
            return best[1], best[2]
    return None
