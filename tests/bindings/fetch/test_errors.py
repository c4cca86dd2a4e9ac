import httpcore
import pytest

from belem.bindings.fetch.addresses import AddressRefused
from belem.bindings.fetch.errors import FOREIGN, rejection


@pytest.mark.parametrize(
    "name", [name for name in httpcore.__all__ if name.endswith(("Error", "Exception", "Timeout"))]
)
def test_every_error_of_the_client_is_in_the_table(name: str) -> None:
    foreign = getattr(httpcore, name)

    rejected = rejection(foreign("why"), "http://example.com/")

    assert issubclass(foreign, FOREIGN)
    assert rejected.name == ("TypeError" if foreign is httpcore.UnsupportedProtocol else "Error")
    assert rejected.properties["cause"] == "why"


def test_a_refused_address_names_the_url() -> None:
    rejected = rejection(AddressRefused("10.0.0.1 is not a public address"), "http://10.0.0.1/")

    assert rejected.message == "Fetch API cannot load: http://10.0.0.1/ (the address is not public)"
    assert rejected.name == "TypeError"
    assert rejected.properties["retryable"] is False


def test_an_error_of_ours_is_not_dressed_up() -> None:
    with pytest.raises(ZeroDivisionError):
        rejection(ZeroDivisionError(), "http://example.com/")
