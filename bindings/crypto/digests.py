"""Hash what a guest sends; large inputs are hashed on a thread."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, Self

from belem.sdk.ops import Answer, Call, Json, Rejection

__all__ = ["Crypto"]

# hashlib makes about 1 GB/s: below this a thread switch costs more than it frees the loop for.
_ON_LOOP_BYTES: Final = 256 * 1024
_THREADS: Final = 2


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...


def _algorithm(name: str) -> Callable[[], _Hash]:
    return lambda: hashlib.new(name, usedforsecurity=False)


# SHA-1 and MD5 are here because Workers has them: a worker that verifies old digests needs them.
_ALGORITHMS: Final[Mapping[str, Callable[[], _Hash]]] = {
    "SHA-1": _algorithm("sha1"),
    "SHA-256": _algorithm("sha256"),
    "SHA-384": _algorithm("sha384"),
    "SHA-512": _algorithm("sha512"),
    "MD5": _algorithm("md5"),
}


class Crypto:
    """The capability "crypto": `digest [algorithm]` with the data as the body answers the digest.

    It keeps nothing between calls, so that one serves every worker of a process.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="digest")

    async def __call__(self, call: Call, /) -> Answer:
        """Answer one host op."""
        if call.method != "digest":
            raise Rejection(f"crypto has no method {call.method!r}.", name="TypeError")
        digest = _find(call.args)()
        if isinstance(call.body, AsyncIterator):
            async for chunk in call.body:
                await self._update(digest, chunk)
        elif call.body is not None:
            await self._update(digest, call.body)
        return Answer(body=digest.digest())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the threads; safe to call twice."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _update(self, digest: _Hash, data: bytes) -> None:
        if len(data) <= _ON_LOOP_BYTES:
            digest.update(data)
        else:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._executor, digest.update, data)


def _find(args: Json) -> Callable[[], _Hash]:
    match args:
        case [str(name)] if (found := _ALGORITHMS.get(name.upper())) is not None:
            return found
        case _:
            raise Rejection(
                "Unrecognized or unimplemented digest algorithm requested.",
                name="NotSupportedError",
            )
