import pytest

from belem.runtime.control import check_worker_name
from belem.runtime.control.errors import BadWorkerName


@pytest.mark.parametrize("name", ["a", "hello", "edge-cache-2", "0", "a" * 63])
def test_a_name_that_can_be_a_host_label(name: str) -> None:
    assert check_worker_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "Hello", "a.b", "a_b", "a b", "../x", "a\n", "ä", "a" * 64]
)
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(BadWorkerName):
        check_worker_name(name)
