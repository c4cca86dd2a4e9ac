"""What every store holds its callers to, and the checks that do it."""

from typing import Final

from belem.bindings.aiokv.errors import InvalidArgument, InvalidKey, InvalidLimit, TooLarge

__all__ = [
    "MAX_KEY_BYTES",
    "MAX_METADATA_BYTES",
    "MAX_NAMESPACE_BYTES",
    "MAX_PAGE_KEYS",
    "MAX_VALUE_BYTES",
    "check_entry",
    "check_limit",
    "encode_key",
    "encode_namespace",
    "encode_prefix",
]

MAX_KEY_BYTES: Final = 512
MAX_NAMESPACE_BYTES: Final = 256
MAX_METADATA_BYTES: Final = 1024
MAX_VALUE_BYTES: Final = 25 * 1024 * 1024
MAX_PAGE_KEYS: Final = 1000


def encode_key(key: str) -> bytes:
    """Return the key's UTF-8 bytes, whose order is the order of `list`."""
    return _encode(key, "Key", minimum_bytes=1, limit_bytes=MAX_KEY_BYTES)


def encode_prefix(prefix: str) -> bytes:
    """Return the prefix's UTF-8 bytes; the empty prefix matches every key."""
    return _encode(prefix, "Prefix", minimum_bytes=0, limit_bytes=MAX_KEY_BYTES)


def encode_namespace(namespace: str) -> bytes:
    """Return the namespace's UTF-8 bytes."""
    return _encode(namespace, "Namespace", minimum_bytes=1, limit_bytes=MAX_NAMESPACE_BYTES)


def check_entry(value: bytes, metadata: str | None) -> None:
    """Refuse a value or metadata that is over its limit."""
    if len(value) > MAX_VALUE_BYTES:
        raise TooLarge(f"Value is {len(value)} bytes; the limit is {MAX_VALUE_BYTES}.")
    if metadata is not None:
        try:
            size_bytes = len(metadata.encode())
        except UnicodeEncodeError as error:
            raise InvalidArgument("Metadata is not valid Unicode (a lone surrogate).") from error
        if size_bytes > MAX_METADATA_BYTES:
            raise TooLarge(f"Metadata is {size_bytes} bytes; the limit is {MAX_METADATA_BYTES}.")


def check_limit(limit: int) -> None:
    """Refuse a page size outside 1 to 1000."""
    if not 1 <= limit <= MAX_PAGE_KEYS:
        raise InvalidLimit(f"Page limit is {limit}; it must be 1 to {MAX_PAGE_KEYS}.")


def _encode(text: str, noun: str, *, minimum_bytes: int, limit_bytes: int) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidKey(f"{noun} {text!r} is not valid Unicode (a lone surrogate).") from error
    if len(encoded) < minimum_bytes:
        raise InvalidKey(f"{noun} is empty.")
    if len(encoded) > limit_bytes:
        raise InvalidKey(f"{noun} is {len(encoded)} bytes; the limit is {limit_bytes}.")
    return encoded
