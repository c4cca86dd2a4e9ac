"""Lead back from transformed text to its source, when the transform wrote no source map.

The type stripper drops tokens (types, unused imports), adds a few (enum bodies, parameter
properties) and lays the rest out anew, but never reorders them. So walking both token lists side by
side, skipping what only one of them has, finds for each token of the output the one it came from.
It is done when the first stack asks.
"""

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import TypeAlias

from belem.runtime.project.positions import Position
from belem.runtime.project.tokens import Kind, Lines, Token, tokenize

__all__ = ["Alignment"]

# How many tokens in a row must be the same before a gap is believed to end there, by how many
# tokens of the source it leaves out: a short run that is far away is likely to be chance.
_RUNS = {2: 20, 3: 100, 4: 400, 6: 2000, 9: 1 << 30}
# How many tokens of the output are looked at for the start of such a run; those before it are ones
# that the transform added.
_ADDED = 16
# Much is dropped and little is added: an added token is as unlikely as this many dropped ones.
_ADDED_COST = 6

_Runs: TypeAlias = dict[int, dict[tuple[str, ...], list[int]]]


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
    """Return the indexes of tokens that are the same one, new first, both ascending."""
    runs = {length: _places(old, length) for length in _RUNS}  # shorter ones first
    pairs: list[tuple[int, int]] = []
    n = o = 0
    # Between anchors no mistake reaches further than the next anchor.
    for next_n, next_o in [*_anchors(old, new, runs), (len(new), len(old))]:
        while o < next_o and n < next_n:
            if old[o] == new[n]:
                pairs.append((n, o))
                o, n = o + 1, n + 1
                continue
            jump = _next_run(new, (n, next_n), (o, next_o), runs)
            n, o = jump or (n + 1, o)
        n, o = next_n, next_o
    return pairs


def _anchors(old: list[str], new: list[str], runs: _Runs) -> list[tuple[int, int]]:
    """Return pairs of what each list has once: tokens and runs of two and three, rising."""
    found: set[tuple[int, int]] = set()
    for length in (1, 2, 3):
        there = runs.get(length) or _places(old, length)
        for key, places in _places(new, length).items():
            origins = there.get(key, [])
            if len(places) == len(origins) == 1:
                found.add((places[0], origins[0]))
    return _longest_rise(sorted(found))


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of the pairs, sorted by their first, whose seconds rise too."""
    ends: list[int] = []  # the least second with which a rise of each length can end
    indexes: list[int] = []  # and the pair that it is of
    before: list[int] = []
    for index, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        before.append(indexes[length - 1] if length else -1)
        ends[length : length + 1] = [second]
        indexes[length : length + 1] = [index]
    rise: list[tuple[int, int]] = []
    index = indexes[-1] if indexes else -1
    while index >= 0:
        rise.append(pairs[index])
        index = before[index]
    return rise[::-1]


def _places(keys: list[str], length: int) -> dict[tuple[str, ...], list[int]]:
    """Return where each run of so many keys starts."""
    places: dict[tuple[str, ...], list[int]] = {}
    for index, run in enumerate(zip(*(keys[start:] for start in range(length)), strict=False)):
        places.setdefault(run, []).append(index)
    return places


def _next_run(
    new: list[str],
    new_range: tuple[int, int],
    old_range: tuple[int, int],
    runs: _Runs,
) -> tuple[int, int] | None:
    """Return where both lists go on alike, leaving out as little as may be of either."""
    (n, new_end), (o, old_end) = new_range, old_range
    best: tuple[int, int, int] | None = None
    for added in range(min(_ADDED, new_end - n)):
        if best is not None and added * _ADDED_COST >= best[0]:
            break
        for length, places in runs.items():
            found = places.get(tuple(new[n + added : n + added + length]))
            if found is None:
                # No longer run starts here either.
                break
            index = bisect_left(found, o)
            if index == len(found) or found[index] >= min(old_end, o + _RUNS[length] + 1):
                continue
            cost = found[index] - o + added * _ADDED_COST
            if best is None or cost < best[0]:
                best = (cost, n + added, found[index])
    return best[1:] if best else None
