import os
from collections.abc import Iterator

import pytest

from belem.runtime.server.fleet.shares import Shares, make_shares_file


@pytest.fixture
def three() -> Iterator[list[Shares]]:
    descriptor = make_shares_file(3)
    shares = [Shares(descriptor, process) for process in range(3)]
    yield shares
    for share in shares:
        share.close()
    os.close(descriptor)


def test_who_has_more_than_another_is_ahead(three: list[Shares]) -> None:
    for share in three:
        share.join()
    three[0].add(1)

    assert [share.ahead() for share in three] == [True, False, False]


def test_an_absent_process_is_waited_for_by_nobody(three: list[Shares]) -> None:
    three[0].join()
    three[0].add(50)
    three[1].join()
    three[1].add(50)

    assert not three[0].ahead()

    three[2].join()
    assert three[0].ahead()

    three[2].leave()
    assert not three[0].ahead()


def test_among_many_a_small_lead_is_none(three: list[Shares]) -> None:
    for share in three:
        share.join()
        share.add(80)
    three[0].add(8)

    assert not three[0].ahead()
    three[0].add(3)
    assert three[0].ahead()


def test_a_process_that_left_counts_nothing_any_more(three: list[Shares]) -> None:
    three[0].join()
    three[0].add(5)
    three[0].leave()
    three[0].add(-1)
    three[1].join()
    three[1].add(2)

    assert not three[1].ahead()
