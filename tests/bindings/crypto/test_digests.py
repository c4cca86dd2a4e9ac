import hashlib
from collections.abc import AsyncIterator

import pytest

from belem.bindings.crypto import Crypto
from belem.sdk.ops import Call, Json, Rejection


@pytest.fixture
async def crypto() -> AsyncIterator[Crypto]:
    async with Crypto() as crypto:
        yield crypto


@pytest.mark.parametrize(
    ("name", "hexadecimal"),
    [
        ("SHA-1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("sha-256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "SHA-384",
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded163"
            "1a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            "SHA-512",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
        ("MD5", "900150983cd24fb0d6963f7d28e17f72"),
    ],
)
async def test_digests_are_the_published_ones(crypto: Crypto, name: str, hexadecimal: str) -> None:
    answer = await crypto(Call("digest", [name], b"abc"))

    assert answer.body == bytes.fromhex(hexadecimal)
    assert answer.value is None


async def test_no_body_is_an_empty_input(crypto: Crypto) -> None:
    answer = await crypto(Call("digest", ["SHA-256"]))

    assert answer.body == hashlib.sha256().digest()


async def test_large_and_streamed_inputs_give_the_same_digest(crypto: Crypto) -> None:
    data = bytes(range(256)) * 4096

    async def chunks() -> AsyncIterator[bytes]:
        yield data[:300_000]
        yield data[300_000:]

    whole = await crypto(Call("digest", ["SHA-256"], data))
    streamed = await crypto(Call("digest", ["SHA-256"], chunks()))

    assert whole.body == streamed.body == hashlib.sha256(data).digest()


@pytest.mark.parametrize("args", [["SHA-3"], ["sha256"], [], [5], ["SHA-1", "x"], None, "SHA-1"])
async def test_an_unknown_algorithm_is_not_supported(crypto: Crypto, args: Json) -> None:
    with pytest.raises(Rejection, match="digest algorithm") as caught:
        await crypto(Call("digest", args, b""))

    assert caught.value.name == "NotSupportedError"


async def test_an_unknown_method_is_refused(crypto: Crypto) -> None:
    with pytest.raises(Rejection, match="encrypt"):
        await crypto(Call("encrypt", ["SHA-1"], b""))


async def test_closing_twice_is_fine(crypto: Crypto) -> None:
    await crypto.aclose()
    await crypto.aclose()
