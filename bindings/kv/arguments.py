"""The arguments of KV operations, checked.

A guest's own half of the binding coerces and checks first, so that errors are thrown where Workers
throws them. What is checked here is what Workers' backend checks, with its texts, and everything
that a guest must not be trusted with.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from belem.bindings.aiokv import MAX_KEY_BYTES, MAX_METADATA_BYTES, MAX_PAGE_KEYS
from belem.bindings.kv.errors import InvalidOption, KeyTooLong, Operation, TooLarge
from belem.sdk.ops import Json, Rejection

__all__ = [
    "MAX_BULK_KEYS",
    "argument",
    "check_cache_ttl",
    "check_expiration",
    "check_key",
    "check_keys",
    "check_limit",
    "check_metadata",
    "check_prefix",
    "options_of",
]

MAX_BULK_KEYS: Final = 100
_MIN_CACHE_TTL_SECONDS: Final = 30
_MIN_EXPIRATION_SECONDS: Final = 60


def options_of(args: Json, index: int) -> Mapping[str, Json]:
    """Return the options object among the arguments; an absent one is empty."""
    options = argument(args, index)
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise Rejection("KV options must be an object.", name="TypeError")
    return options


def argument(args: Json, index: int) -> Json:
    """Return one of the arguments, None past their end."""
    if not isinstance(args, Sequence) or isinstance(args, str):
        raise Rejection("KV arguments must be a list.", name="TypeError")
    return args[index] if index < len(args) else None


def check_key(operation: Operation, key: Json) -> str:
    """Return the key of a single operation."""
    name = _text(key, "Key name")
    if name == "":
        raise Rejection("Key name cannot be empty.", name="TypeError")
    if name in (".", ".."):
        raise Rejection(f'"{name}" is not allowed as a key name.', name="TypeError")
    _check_length(operation, name)
    return name


def check_keys(operation: Operation, keys: Json) -> list[str]:
    """Return the keys of a bulk operation, whose texts are the backend's."""
    if not isinstance(keys, Sequence) or isinstance(keys, str):
        raise Rejection("KV keys must be a list.", name="TypeError")
    if len(keys) > MAX_BULK_KEYS:
        raise InvalidOption(operation, f"You can request a maximum of {MAX_BULK_KEYS} keys")
    if not keys:
        raise InvalidOption(operation, "You must request a minimum of 1 key")
    return [_check_bulk_key(operation, key) for key in keys]


def check_prefix(prefix: Json) -> str:
    """Return the prefix of a listing."""
    if prefix is None:
        return ""
    text = _text(prefix, "Prefix")
    _check_length("GET", text)
    return text


def check_limit(limit: Json) -> int:
    """Return the page size of a listing."""
    number = _whole_number(limit, "limit")
    if number is None:
        return MAX_PAGE_KEYS
    if number < 1:
        raise InvalidOption(
            "GET", f"Invalid key_count_limit of {number}. Please specify an integer greater than 0."
        )
    if number > MAX_PAGE_KEYS:
        raise InvalidOption(
            "GET",
            f"Invalid key_count_limit of {number}. "
            f"Please specify an integer less than {MAX_PAGE_KEYS}.",
        )
    return number


def check_cache_ttl(operation: Operation, cache_ttl: Json) -> None:
    """Refuse what Workers refuses; there is no cache in front of the store to set."""
    number = _whole_number(cache_ttl, "cacheTtl")
    if number is not None and number < _MIN_CACHE_TTL_SECONDS:
        raise InvalidOption(
            operation,
            f"Invalid cache_ttl of {number}. Cache TTL must be at least {_MIN_CACHE_TTL_SECONDS}.",
        )


def check_expiration(options: Mapping[str, Json], *, now: int) -> int | None:
    """Return the second in which the entry expires; a TTL wins over a time."""
    ttl = _whole_number(options.get("expirationTtl"), "expirationTtl")
    if ttl is not None:
        if ttl <= 0:
            reason = "Please specify integer greater than 0."
        elif ttl < _MIN_EXPIRATION_SECONDS:
            reason = f"Expiration TTL must be at least {_MIN_EXPIRATION_SECONDS}."
        else:
            return now + ttl
        raise InvalidOption("PUT", f"Invalid expiration_ttl of {ttl}. {reason}")
    at = _whole_number(options.get("expiration"), "expiration")
    if at is None or at >= now + _MIN_EXPIRATION_SECONDS:
        return at
    if at <= now:
        reason = (
            "Please specify integer greater than "
            "the current number of seconds since the UNIX epoch."
        )
    else:
        reason = (
            f"Expiration times must be at least {_MIN_EXPIRATION_SECONDS} seconds in the future."
        )
    raise InvalidOption("PUT", f"Invalid expiration of {at}. {reason}")


def check_metadata(metadata: Json) -> str | None:
    """Return the metadata, JSON text that the guest made."""
    if metadata is None:
        return None
    text = _text(metadata, "Metadata")
    size_bytes = len(text.encode())
    if size_bytes > MAX_METADATA_BYTES:
        raise TooLarge(
            "PUT", f"Metadata length of {size_bytes} exceeds limit of {MAX_METADATA_BYTES}."
        )
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidOption("PUT", "Metadata is not JSON.") from error
    return text


def _whole_number(value: Json, name: str) -> int | None:
    """Return the number; a guest's half sends whole numbers only."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise Rejection(f"KV option {name} must be a whole number.", name="TypeError")
    return value


def _check_bulk_key(operation: Operation, key: Json) -> str:
    name = _text(key, "Key name")
    if name == "":
        raise InvalidOption(operation, "Key names must not be empty")
    if name in (".", ".."):
        raise InvalidOption(operation, f'Illegal key name "{name}". Please use a different name.')
    _check_length(operation, name)
    return name


def _check_length(operation: Operation, name: str) -> None:
    size_bytes = len(name.encode())
    if size_bytes > MAX_KEY_BYTES:
        raise KeyTooLong(
            operation,
            f"UTF-8 encoded length of {size_bytes} exceeds key length limit of {MAX_KEY_BYTES}.",
        )


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")  # though Python would read it


def _text(value: Json, noun: str) -> str:
    if not isinstance(value, str):
        raise Rejection(f"{noun} must be a string.", name="TypeError")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Rejection(f"{noun} is not valid Unicode.", name="TypeError") from error
    return value
