"""What stalled clients hold: counted, bounded, and cut by how long they have stalled."""

import asyncio
from collections.abc import Callable

import pytest

from belem.runtime.server.budget import Budget, BudgetLimits, Lease


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time the test sets; timers are fired by `advance`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0

    def time(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.settle()

    def settle(self) -> None:
        """Run what is due."""
        for _ in range(2):
            self.call_soon(self.stop)
            self.run_forever()


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Clients:
    """Leases by name, and who was cut."""

    def __init__(self, clock: Clock, limits: BudgetLimits) -> None:
        self.budget = Budget(limits, loop=clock)
        self.cut: list[str] = []
        self._clock = clock

    def take(self, name: str, held_bytes: int, worker: str = "a") -> Lease:
        return self.budget.take(worker, held_bytes, self._cutter(name))

    def _cutter(self, name: str) -> Callable[[], None]:
        return lambda: self.cut.append(name)

    def close(self) -> None:
        self.budget.close()
        self._clock.settle()
        self._clock.close()


@pytest.fixture
def clients(clock: Clock) -> Clients:
    return Clients(clock, BudgetLimits(worker_bytes=100, host_bytes=250, stalled_seconds=1.0))


def test_the_longest_stalled_is_cut_for_the_newest(clock: Clock, clients: Clients) -> None:
    first, second = clients.take("first", 40), clients.take("second", 40)
    clock.advance(2)
    first.moved()
    clock.advance(2)

    newest = clients.take("newest", 50)
    clock.settle()

    assert clients.cut == ["second"]
    assert (first.is_over, second.is_over, newest.is_over) == (False, True, False)
    assert (clients.budget.held_bytes, clients.budget.cuts) == (90, 1)
    clients.close()


def test_nobody_is_cut_from_within_the_call_that_needs_the_room(
    clock: Clock, clients: Clients
) -> None:
    clients.take("old", 90)
    clock.advance(5)

    clients.take("new", 90)
    assert clients.cut == []

    clock.settle()
    assert clients.cut == ["old"]
    clients.close()


def test_those_that_move_are_spared_until_they_stall(clock: Clock, clients: Clients) -> None:
    one, two = clients.take("one", 80), clients.take("two", 80)
    clock.settle()
    assert clients.cut == []

    clock.advance(0.5)
    two.moved()
    clock.advance(0.6)

    assert clients.cut == ["one"]
    assert one.is_over
    clients.close()


def test_past_twice_the_budget_even_those_that_move_are_cut(clock: Clock, clients: Clients) -> None:
    for number in range(3):
        clients.take(str(number), 80)
    clock.settle()

    assert clients.cut == ["0"]
    clients.close()


def test_one_reply_alone_may_be_larger_than_the_budget(clock: Clock, clients: Clients) -> None:
    lease = clients.take("large", 1_000)
    clock.advance(10)
    lease.resize(1_001)
    clock.advance(10)

    assert clients.cut == []
    clients.close()


def test_a_worker_is_cut_for_its_own_clients_only(clock: Clock, clients: Clients) -> None:
    clients.take("b", 90, worker="b")
    clients.take("a1", 90, worker="a")
    clock.advance(5)

    clients.take("a2", 60, worker="a")
    clock.settle()

    assert clients.cut == ["a1"]
    clients.close()


def test_the_host_has_a_budget_of_its_own(clock: Clock, clients: Clients) -> None:
    for worker in "abc":
        clients.take(worker, 80, worker=worker)
        clock.advance(2)

    clients.take("d", 80, worker="d")
    clock.settle()

    assert clients.cut == ["a"]
    clients.close()


def test_what_is_released_counts_no_more(clock: Clock, clients: Clients) -> None:
    lease = clients.take("gone", 100)
    lease.release()
    lease.release()
    lease.resize(50)
    lease.moved()
    clock.advance(5)

    clients.take("new", 100)
    clock.settle()

    assert clients.cut == []
    assert clients.budget.held_bytes == 100
    clients.close()


def test_a_streamed_reply_holds_what_waits_for_its_client(clock: Clock, clients: Clients) -> None:
    stream = clients.take("stream", 0)
    for _ in range(100):
        stream.resize(60)
        stream.resize(0)
    stream.resize(60)
    clock.advance(2)

    clients.take("new", 60)
    clock.settle()

    assert clients.cut == ["stream"]
    clients.close()
