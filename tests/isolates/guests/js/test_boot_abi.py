"""boot/abi.js is the twin of sdk/abi.py, and order.txt names every boot script."""

import re
from enum import IntEnum
from pathlib import Path

import pytest

from belem.isolates.guests import js as guest
from belem.sdk import abi

BOOT = Path(guest.__file__).with_name("boot")


@pytest.mark.parametrize("kinds", [abi.ToGuest, abi.ToHost])
def test_kinds_are_the_same_in_both_languages(kinds: type[IntEnum]) -> None:
    source = (BOOT / "abi.js").read_text()

    found = re.search(rf"boot\.{kinds.__name__} = {{(.*?)}}", source, re.DOTALL)

    assert found is not None
    pairs = re.findall(r"(\w+): (\d+)", found[1])
    assert {name: int(number) for name, number in pairs} == {
        kind.name: kind.value for kind in kinds
    }


@pytest.mark.parametrize("name", ["GUEST_STREAM_WINDOW_BYTES", "HOST_STREAM_WINDOW_BYTES"])
def test_windows_are_the_same_in_both_languages(name: str) -> None:
    found = re.search(rf"boot\.{name} = (\d+) \* (\d+);", (BOOT / "abi.js").read_text())

    assert found is not None
    assert int(found[1]) * int(found[2]) == getattr(abi, name)


def test_the_order_names_every_script_once() -> None:
    names = (BOOT / "order.txt").read_text().split()

    assert sorted(names) == sorted(path.name for path in BOOT.glob("*.js"))
    assert (names[0], names[-1]) == ("core.js", "seal.js")
