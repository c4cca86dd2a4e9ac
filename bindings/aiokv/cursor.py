"""Where a listing stopped, as text that callers may keep but not read.

A cursor is base64url of a version byte, a CRC-32 and the last key returned. It is not a secret and
not a capability (it names no namespace); the checksum turns a truncated or invented cursor into an
error instead of a listing that starts somewhere unexpected. A new format takes a new version byte.
"""

import base64
import binascii
import zlib
from typing import Final

from belem.bindings.aiokv.errors import InvalidCursor
from belem.bindings.aiokv.limits import MAX_KEY_BYTES

__all__ = ["decode_cursor", "encode_cursor"]

_VERSION: Final = b"\x01"
_CHECKSUM_BYTES: Final = 4
_HEAD_BYTES: Final = len(_VERSION) + _CHECKSUM_BYTES
# Base64 takes four characters for three bytes; anything longer cannot be one of ours.
_MAX_CHARACTERS: Final = (_HEAD_BYTES + MAX_KEY_BYTES + 2) // 3 * 4


def encode_cursor(last_key: bytes) -> str:
    """Return the cursor for a page that ended with this key."""
    head = _VERSION + zlib.crc32(last_key).to_bytes(_CHECKSUM_BYTES)
    return base64.urlsafe_b64encode(head + last_key).decode().rstrip("=")


def decode_cursor(cursor: str) -> bytes:
    """Return the key that the page before ended with; refuse what `encode_cursor` did not make."""
    if len(cursor) > _MAX_CHARACTERS:
        raise InvalidCursor(f"Cursor is {len(cursor)} characters; the limit is {_MAX_CHARACTERS}.")
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        raw = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise InvalidCursor("Cursor is not base64url text.") from error
    checksum, last_key = raw[len(_VERSION) : _HEAD_BYTES], raw[_HEAD_BYTES:]
    if raw[: len(_VERSION)] != _VERSION:
        raise InvalidCursor("Cursor is of a version that this store does not know.")
    if not last_key or checksum != zlib.crc32(last_key).to_bytes(_CHECKSUM_BYTES):
        raise InvalidCursor("Cursor is damaged.")
    try:
        last_key.decode()
    except UnicodeDecodeError as error:
        raise InvalidCursor("Cursor is damaged.") from error
    return last_key
