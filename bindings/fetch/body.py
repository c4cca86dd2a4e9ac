"""The body of a response, on its way to a guest."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import httpcore

from belem.bindings.fetch.decoding import decoded
from belem.bindings.fetch.errors import FOREIGN, rejection

__all__ = ["ResponseBody"]


class ResponseBody:
    """Iterate over a body, unpacked where `encoding` says how; closing gives the connection back.

    This is a class because a generator that was never started runs none of its code when it is
    closed: a response whose body nobody reads would keep its connection.
    """

    def __init__(self, response: httpcore.Response, *, encoding: str | None, url: str) -> None:
        self._response = response
        self._pieces = _pieces(response, encoding)
        self._url = url

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._pieces)
        except FOREIGN as error:
            raise rejection(error, self._url) from error

    async def aclose(self) -> None:
        """Let go of the response, read to its end or not; safe to call twice."""
        try:
            await self._pieces.aclose()
        finally:
            await self._response.aclose()


async def _pieces(response: httpcore.Response, encoding: str | None) -> AsyncGenerator[bytes, None]:
    async with aclosing(response):
        chunks: AsyncIterator[bytes] = response.aiter_stream()
        if encoding is None:
            async for chunk in chunks:
                yield chunk
        else:
            async with aclosing(decoded(chunks, encoding)) as pieces:
                async for piece in pieces:
                    yield piece
