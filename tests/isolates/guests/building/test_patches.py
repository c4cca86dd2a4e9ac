"""Patches to upstream sources."""

import pytest

from belem.isolates.guests.building import BuildFailed, Replacement, apply


def test_each_replacement_is_made_in_order() -> None:
    patches = [Replacement("first", "a", "bc"), Replacement("second", "c", "d")]

    assert apply("xay", "file.c", patches) == "xbdy"


@pytest.mark.parametrize(("source", "found"), [("nothing here", 0), ("spam spam", 2)])
def test_a_patch_that_does_not_fit_once_is_refused_with_its_reason(source: str, found: int) -> None:
    patch = Replacement("less spam", "spam", "eggs")

    with pytest.raises(BuildFailed, match=f'"less spam" fits {found} places in file.c'):
        apply(source, "file.c", [patch])
