from pathlib import Path

import pytest

from belem.runtime.server import BadSettings, ServeSettings

DATA = Path("data")


@pytest.mark.parametrize("processes", [1, 2, 256])
def test_processes_in_range_are_taken(processes: int) -> None:
    assert ServeSettings(data=DATA, processes=processes).processes == processes


@pytest.mark.parametrize("processes", [-1, 0, 257])
def test_processes_out_of_range_are_refused(processes: int) -> None:
    with pytest.raises(BadSettings, match=f"--processes is {processes}; it must be 1 to 256"):
        ServeSettings(data=DATA, processes=processes)


def test_processes_do_not_go_with_isolation_process() -> None:
    with pytest.raises(BadSettings, match="--processes 2 does not go with --isolation process"):
        ServeSettings(data=DATA, processes=2, isolation="process")


def test_max_processes_out_of_range_are_refused() -> None:
    with pytest.raises(BadSettings, match="--max-processes is 0; it must be 1 to 4096"):
        ServeSettings(data=DATA, isolation="process", max_processes=0)
