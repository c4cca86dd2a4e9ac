"""Lines of those who wait for a turn."""

from collections.abc import Callable

from belem.isolates.turns import Turns


def begins(begun: list[int], id: int) -> Callable[[], None]:
    return lambda: begun.append(id)


def test_turns_are_taken_in_order_and_by_owner() -> None:
    turns, begun = Turns(2), list[int]()
    for id in range(5):
        turns.enter(1, id, begins(begun, id))
    turns.enter(2, 10, begins(begun, 10))
    assert (begun, len(turns)) == ([0, 1, 10], 3)

    turns.leave(1, 1)
    turns.leave(1, 0)

    assert begun == [0, 1, 10, 2, 3]


def test_one_that_leaves_the_line_is_not_begun() -> None:
    turns, begun = Turns(1), list[int]()
    for id in range(3):
        turns.enter(1, id, begins(begun, id))

    turns.leave(1, 1)
    turns.leave(1, 0)
    turns.leave(1, 2)
    turns.enter(1, 3, begins(begun, 3))

    assert (begun, len(turns)) == ([0, 2, 3], 0)


def test_nobody_is_remembered_when_all_have_left() -> None:
    turns, begun = Turns(1), list[int]()
    for owner in range(100):
        turns.enter(owner, owner, begins(begun, owner))
        turns.leave(owner, owner)
    turns.enter(1, 1, begins(begun, 1))
    turns.enter(1, 2, begins(begun, 2))

    turns.clear()

    assert len(turns) == 0
    turns.enter(1, 3, begins(begun, 3))
    assert begun[-1] == 3
