"""Undo the content encoding of a response, in pieces of bounded size.

A few kilobytes may unpack to gigabytes; a piece is at most 64 KiB, and the next is made when the
reader wants it.
"""

import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from typing import Final, Protocol

__all__ = ["ACCEPTED_ENCODINGS", "DECODABLE", "DecodingFailed", "decoded"]

ACCEPTED_ENCODINGS: Final = "gzip, deflate"
DECODABLE: Final = frozenset({"gzip", "x-gzip", "deflate"})

_PIECE_BYTES: Final = 64 * 1024
_GZIP_FIRST_BYTE: Final = 0x1F
_GZIP_BITS: Final = 31
_ZLIB_BITS: Final = 15
_RAW_BITS: Final = -15


class DecodingFailed(Exception):
    """The bytes are not what the content encoding says, or end too early."""


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


async def decoded(chunks: AsyncIterable[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    """Yield the decoded bytes of a body in one of the decodable encodings."""
    decoder = _Decoder(encoding)
    async for chunk in chunks:
        try:
            for piece in decoder.feed(chunk):
                yield piece
        except zlib.error as error:
            raise DecodingFailed(f"The body is not valid {encoding}: {error}.") from error
    if not decoder.complete:
        raise DecodingFailed(f"The {encoding} body ends too early.")


class _Decoder:
    def __init__(self, encoding: str) -> None:
        self._gzip = encoding != "deflate"
        self._inflater: _Inflater | None = None

    @property
    def complete(self) -> bool:
        # No bytes at all are an empty body, whatever its encoding is said to be.
        return self._inflater is None or self._inflater.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflater is None or self._inflater.eof:
                if self._inflater is not None and not (self._gzip and data[0] == _GZIP_FIRST_BYTE):
                    return  # padding behind the end, which everybody ignores
                self._inflater = self._begin(data)  # the first, or the next of gzip files joined
            more = True
            while more:
                piece = self._inflater.decompress(data, _PIECE_BYTES)
                data = self._inflater.unconsumed_tail
                if piece:
                    yield piece
                # After a full piece, output may be waiting inside though all input was taken.
                more = not self._inflater.eof and (bool(data) or len(piece) == _PIECE_BYTES)
            data = self._inflater.unused_data

    def _begin(self, data: bytes) -> _Inflater:
        if self._gzip:
            return zlib.decompressobj(_GZIP_BITS)
        # "deflate" means the zlib format, but some servers send the bare stream. A zlib header's
        # low nibble is 8.
        return zlib.decompressobj(_ZLIB_BITS if data[0] & 0x0F == 8 else _RAW_BITS)
