"""The host half of a KV namespace: host ops in, store calls out."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from belem.bindings.aiokv import MAX_VALUE_BYTES, InvalidCursor, Key, Store, StoreError
from belem.bindings.aiokv import TooLarge as StoreTooLarge
from belem.bindings.kv.arguments import (
    argument,
    check_cache_ttl,
    check_expiration,
    check_key,
    check_keys,
    check_limit,
    check_metadata,
    check_prefix,
    options_of,
)
from belem.bindings.kv.errors import InvalidOption, Operation, StoreUnavailable, TooLarge
from belem.sdk.ops import Answer, Call, Json, Rejection

__all__ = ["KVNamespace"]

_STREAM_CHUNK_BYTES: Final = 64 * 1024
_BULK_TYPES: Final = (None, "text", "json")
_MEBIBYTE: Final = 1024 * 1024

logger = logging.getLogger(__name__)


class KVNamespace:
    """One namespace of a store, as a capability.

    The ops and what they answer (guest.js is the other side of it):

    - `get [key, {type?, cacheTtl?}]`: null when missing, else `[metadata]` and the value as the
      body, which is a stream for type "stream".
    - `get_many [keys, {type?, cacheTtl?}]`: for each key null or `[bytes, metadata]`; the values
      one after the other as the body.
    - `put [key, {expiration?, expirationTtl?, metadata?}]` with the value as the body: null.
    - `delete [key]`: null.
    - `list [{prefix?, limit?, cursor?}]`: `{keys: [{name, expiration?, metadata?}], list_complete,
      cursor?}`.

    Metadata is JSON text in both directions; only guests parse it.
    """

    def __init__(
        self, store: Store, namespace_id: str, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._namespace_id = namespace_id
        self._clock = clock

    async def __call__(self, call: Call, /) -> Answer:
        """Answer one host op."""
        match call.method:
            case "get":
                return await self._get(call.args)
            case "get_many":
                return await self._get_many(call.args)
            case "put":
                return await self._put(call)
            case "delete":
                return await self._delete(call.args)
            case "list":
                return await self._list(call.args)
            case _:
                raise Rejection(f"KV has no method {call.method!r}.", name="TypeError")

    async def _get(self, args: Json) -> Answer:
        key = check_key("GET", argument(args, 0))
        options = options_of(args, 1)
        check_cache_ttl("GET", options.get("cacheTtl"))
        try:
            entry = await self._store.get(self._namespace_id, key)
        except StoreError as error:
            raise self._failure("GET", error) from error
        if entry is None:
            return Answer()
        stream = options.get("type") == "stream"
        return Answer([entry.metadata], _chunks(entry.value) if stream else entry.value)

    async def _get_many(self, args: Json) -> Answer:
        options = options_of(args, 1)
        kind = options.get("type")
        if kind not in _BULK_TYPES:
            raise InvalidOption("GET_BULK", f'"{kind}" is not a valid type. Use "json" or "text"')
        keys = check_keys("GET_BULK", argument(args, 0))
        check_cache_ttl("GET_BULK", options.get("cacheTtl"))
        try:
            found = await self._store.get_many(self._namespace_id, keys)
        except StoreTooLarge as error:
            limit = f"{MAX_VALUE_BYTES // _MEBIBYTE}MB"
            raise TooLarge(
                "GET_BULK", f"Total size of request exceeds the limit of {limit}"
            ) from error
        except StoreError as error:
            raise self._failure("GET_BULK", error) from error
        # A key asked for twice is sent once, where it first stands.
        entries = [found.pop(key, None) for key in keys]
        return Answer(
            [None if entry is None else [len(entry.value), entry.metadata] for entry in entries],
            b"".join(entry.value for entry in entries if entry is not None),
        )

    async def _put(self, call: Call) -> Answer:
        key = check_key("PUT", argument(call.args, 0))
        options = options_of(call.args, 1)
        expiration = check_expiration(options, now=int(self._clock()))
        metadata = check_metadata(options.get("metadata"))
        value = await _value(call.body)
        try:
            await self._store.put(
                self._namespace_id, key, value, metadata=metadata, expiration=expiration
            )
        except StoreError as error:
            raise self._failure("PUT", error) from error
        return Answer()

    async def _delete(self, args: Json) -> Answer:
        key = check_key("DELETE", argument(args, 0))
        try:
            await self._store.delete(self._namespace_id, key)
        except StoreError as error:
            raise self._failure("DELETE", error) from error
        return Answer()

    async def _list(self, args: Json) -> Answer:
        options = options_of(args, 0)
        prefix = check_prefix(options.get("prefix"))
        limit = check_limit(options.get("limit"))
        cursor = options.get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            raise Rejection("KV option cursor must be a string.", name="TypeError")
        try:
            page = await self._store.list(
                self._namespace_id, prefix=prefix, limit=limit, cursor=cursor or None
            )
        except InvalidCursor as error:
            raise InvalidOption("GET", "Invalid cursor.") from error
        except StoreError as error:
            raise self._failure("GET", error) from error
        value: dict[str, Json] = {
            "keys": [_listed(key) for key in page.keys],
            "list_complete": page.cursor is None,
        }
        if page.cursor is not None:
            value["cursor"] = page.cursor
        return Answer(value)

    def _failure(self, operation: Operation, error: StoreError) -> StoreUnavailable:
        # The operator reads what went wrong; a worker needs to know only that it was not its fault.
        logger.error(
            "kv_store_failed",
            extra={"operation": operation, "code": error.code, "namespace": self._namespace_id},
            exc_info=error,
        )
        return StoreUnavailable(operation, "Service Unavailable")


def _listed(key: Key) -> dict[str, Json]:
    listed: dict[str, Json] = {"name": key.name}
    if key.expiration is not None:
        listed["expiration"] = key.expiration
    if key.metadata is not None:
        listed["metadata"] = key.metadata
    return listed


async def _value(body: bytes | AsyncIterator[bytes] | None) -> bytes:
    """Read the value to put; stop reading at the limit, whatever the guest still sends."""
    if body is None:
        return b""
    if isinstance(body, bytes):
        _check_size(len(body))
        return body
    value = bytearray()
    async for chunk in body:
        _check_size(len(value) + len(chunk))
        value += chunk
    return bytes(value)


def _check_size(size_bytes: int) -> None:
    if size_bytes > MAX_VALUE_BYTES:
        raise TooLarge("PUT", f"Value length of {size_bytes} exceeds limit of {MAX_VALUE_BYTES}.")


async def _chunks(value: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(value), _STREAM_CHUNK_BYTES):
        yield value[start : start + _STREAM_CHUNK_BYTES]
