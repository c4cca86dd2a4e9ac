"""Numbers as text: the short way gives the shortest decimal, and hands on what it cannot."""

import random
import struct
from decimal import Decimal
from math import isfinite
from typing import cast

import pytest

from tests.support.js_guest import JsGuest


def javascript_text(number: float) -> str:
    """Return what the language says, from Python's shortest decimal."""
    if number == 0:
        return "0"
    sign, numerals, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, numerals))
    point = len(digits) + exponent
    if len(digits) <= point <= 21:
        text = digits + "0" * exponent
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        text = f"{digits[0]}{fraction}e{point - 1:+d}"
    return "-" * sign + text


def numbers(seed: int) -> list[float]:
    source = random.Random(seed)
    powers = [10.0**exponent for exponent in range(-10, 25)]
    drawn = [
        *(struct.unpack("<d", source.randbytes(8))[0] for _ in range(500)),
        *(round(source.uniform(-1e6, 1e6), source.randint(0, 12)) for _ in range(1500)),
        *(source.randint(-(10**16), 10**16) / 10 ** source.randint(0, 20) for _ in range(1000)),
        *(power * source.choice([1, -3, 7, 9.5]) for power in powers),
        *(float(2**exponent + step) for exponent in range(40, 60) for step in (-1, 0, 1)),
    ]
    return [number for number in drawn if isfinite(number)]


@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_are_written_as_the_language_says(guest: JsGuest, seed: int) -> None:
    drawn = numbers(seed)

    source = ",".join(map(repr, drawn))
    body = f"const all = [{source}]; return [all.map(String), JSON.stringify(all).slice(1, -1)]"
    strings, text = cast(tuple[list[str], str], guest.evaluate(body))  # written just above

    assert strings == [javascript_text(number) for number in drawn]
    assert text.split(",") == strings


def test_what_is_no_number_or_has_a_sign_alone(guest: JsGuest) -> None:
    body = "return [`${-0} ${NaN} ${-Infinity} ${0.1 + 0.2}`, JSON.stringify([-0, NaN, Infinity])]"

    assert guest.evaluate(body) == ["0 NaN -Infinity 0.30000000000000004", "[0,null,null]"]
