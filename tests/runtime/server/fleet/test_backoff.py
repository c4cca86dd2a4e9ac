from belem.runtime.server.fleet.backoff import Backoff


def test_each_early_death_doubles_the_wait_up_to_the_longest() -> None:
    backoff = Backoff(first_seconds=0.1, last_seconds=30)
    waits: list[float] = []

    for _ in range(12):
        backoff = backoff.after(lived_seconds=1)
        waits.append(backoff.wait_seconds)

    assert waits[:4] == [0.1, 0.2, 0.4, 0.8]
    assert waits[-2:] == [30, 30]


def test_a_long_life_makes_up_for_earlier_deaths() -> None:
    backoff = Backoff(stable_seconds=60)
    for _ in range(8):
        backoff = backoff.after(lived_seconds=0)

    assert backoff.after(lived_seconds=60).wait_seconds == backoff.first_seconds


def test_ten_thousand_deaths_still_have_a_wait() -> None:
    assert Backoff(deaths=10_000).wait_seconds == 30
