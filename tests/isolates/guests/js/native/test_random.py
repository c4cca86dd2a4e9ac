"""Randomness, against ChaCha20 written from RFC 8439."""

import struct
from typing import cast

import pytest

from tests.support.js_guest import JsGuest

from tests.isolates.guests.js.native.conftest import Compiled  # isort: skip


def _quarter(s: list[int], a: int, b: int, c: int, d: int) -> None:
    for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & 0xFFFFFFFF
        word = s[z] ^ s[x]
        s[z] = (word << bits | word >> (32 - bits)) & 0xFFFFFFFF


def _block(key: bytes, counter: int, nonce: bytes = bytes(12)) -> bytes:
    start = list(struct.unpack("<4I", b"expand 32-byte k"))
    start += (*struct.unpack("<8I", key), counter, *struct.unpack("<3I", nonce))
    state = list(start)
    for _ in range(10):
        for i in range(4):
            _quarter(state, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            _quarter(state, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(state, start, strict=True)))


class Reference:
    """The generator of random.c: a block mixes entropy in, and each request replaces the key."""

    def __init__(self) -> None:
        self.key = bytes(32)

    def seed(self, entropy: bytes) -> None:
        for at in range(0, len(entropy) - 31, 32):
            mixed = bytes(a ^ b for a, b in zip(self.key, entropy[at : at + 32], strict=True))
            self.key = _block(mixed, 0)[:32]

    def take(self, count: int) -> bytes:
        blocks = (32 + count + 63) // 64
        stream = b"".join(_block(self.key, i) for i in range(blocks))
        self.key = stream[:32]
        return stream[32 : 32 + count]


def _random(guest: JsGuest, count: int) -> bytes:
    return bytes(cast(list[int], guest.evaluate(f"return [...H.random(new Uint8Array({count}))]")))


def test_the_reference_is_chacha20() -> None:
    # RFC 8439, section 2.3.2
    block = _block(bytes(range(32)), 1, bytes.fromhex("000000090000004a00000000"))

    assert block.hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


def test_the_bytes_are_those_of_the_reference(guest: JsGuest) -> None:
    entropy = bytes(range(100, 132))
    reference = Reference()
    reference.seed(entropy)
    guest.seed(entropy)
    reference.take(8)  # Math.random's state

    for count in (1, 31, 32, 33, 64, 95, 96, 97, 1000):
        assert _random(guest, count) == reference.take(count)


def test_each_seed_is_mixed_in(guest: JsGuest) -> None:
    reference = Reference()
    for entropy in (b"a" * 32, b"b" * 64):
        reference.seed(entropy)
        guest.seed(entropy)
        reference.take(8)

    assert _random(guest, 16) == reference.take(16)


def test_there_is_no_randomness_before_the_host_seeds(guest: JsGuest) -> None:
    assert "not available before the first event" in guest.throws("H.random(new Uint8Array(1))")[1]

    guest.seed(b"too short" * 3)
    assert guest.throws("H.random(new Uint8Array(1))")[0] == "Error"

    guest.seed(b"s" * 32)
    assert len(_random(guest, 4)) == 4


def test_any_view_is_filled_within_its_bounds(guest: JsGuest) -> None:
    guest.seed(b"s" * 32)

    body = (
        "const u = new Uint8Array(64), v = u.subarray(16, 48);"
        "const same = H.random(v) === v; H.random(new Uint8Array()); H.random(new"
        " BigUint64Array(2));"
        "return [same, [...u.subarray(0, 16), ...u.subarray(48)].every((x) => x === 0),"
        " v.some((x) => x)]"
    )

    assert guest.evaluate(body) == [True, True, True]
    assert guest.throws("H.random([1])")[0] == "TypeError"


def test_math_random_differs_with_the_seed(compiled: Compiled) -> None:
    def draws(seed: bytes) -> object:
        guest = JsGuest(*compiled)
        if seed:
            guest.seed(seed)
        return guest.evaluate("return [Math.random(), Math.random()]")

    assert draws(b"") == draws(b"")
    assert draws(b"a" * 32) == draws(b"a" * 32)
    assert draws(b"a" * 32) != draws(b"b" * 32) != draws(b"")


@pytest.mark.parametrize("length", [0, 31])
def test_the_seed_is_wiped_from_the_inbox(guest: JsGuest, length: int) -> None:
    marker = b"never-to-be-seen-again-in-memory"

    guest.seed(marker + b"x" * length)

    assert marker not in guest.memory()
