import pytest

from belem.bindings.aiokv import MAX_NAMESPACE_BYTES
from belem.bindings.kv import namespace_id
from belem.sdk.errors import UserError

ID = "0f2ac74b498b48028cb68387c421e279"


def test_a_namespace_is_named_by_its_id() -> None:
    assert namespace_id("CACHE", ID) == ID
    assert namespace_id("CACHE", ID, worker="shop") == ID


def test_without_an_id_it_is_named_by_its_binding_and_worker() -> None:
    assert namespace_id("CACHE", None) == "CACHE"
    assert namespace_id("CACHE", None, worker="shop") == "shop/CACHE"


def test_the_longest_name_fits_into_a_store() -> None:
    name = namespace_id("x" * 127, None, worker="y" * 127)

    assert len(name) <= MAX_NAMESPACE_BYTES


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 128, "é" * 64, "\ud800", "shop/CACHE"])
def test_an_impossible_name_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="KV namespace id"):
        namespace_id("CACHE", name)
    with pytest.raises(UserError, match="KV namespace worker"):
        namespace_id("CACHE", None, worker=name)
