"""Turns: of the connections of one request only so many are opened at a time; the others queue."""

from collections.abc import Callable

__all__ = ["Turns"]


class _Line:
    """Those of one owner: how many have a turn, and what begins the others, in order, by id."""

    __slots__ = ("open", "waiting")

    def __init__(self) -> None:
        self.open = 0
        self.waiting: dict[int, Callable[[], None]] = {}


class Turns:
    """The lines of all owners. Whoever bounds what is pending bounds the lines."""

    __slots__ = ("_lines", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: dict[int, _Line] = {}

    def __len__(self) -> int:
        """Return how many wait for a turn."""
        return sum(len(line.waiting) for line in self._lines.values())

    def enter(self, owner: int, id: int, begin: Callable[[], None]) -> None:
        """Call `begin` at once, or when the turns before it are over."""
        line = self._lines.get(owner)
        if line is None:
            line = self._lines[owner] = _Line()
        if line.open < self._most:
            line.open += 1
            begin()
        else:
            line.waiting[id] = begin

    def leave(self, owner: int, id: int) -> None:
        """End a turn, or the waiting for one."""
        line = self._lines[owner]
        if line.waiting.pop(id, None) is not None:
            return
        if line.waiting:
            next_id = next(iter(line.waiting))
            line.waiting.pop(next_id)()
            return
        line.open -= 1
        if not line.open:
            del self._lines[owner]

    def clear(self) -> None:
        """Forget everybody."""
        self._lines.clear()
