"""aiokv: an async key-value library with ordered keys, metadata and expiration."""

from belem.bindings.aiokv.errors import (
    InvalidArgument,
    InvalidCursor,
    InvalidKey,
    InvalidLimit,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreFailed,
    StoreUnreadable,
    TooLarge,
)
from belem.bindings.aiokv.limits import (
    MAX_KEY_BYTES,
    MAX_METADATA_BYTES,
    MAX_NAMESPACE_BYTES,
    MAX_PAGE_KEYS,
    MAX_VALUE_BYTES,
)
from belem.bindings.aiokv.memory import MemoryStore
from belem.bindings.aiokv.sqlite import SQLiteStore
from belem.bindings.aiokv.store import Entry, Key, Page, Store

__all__ = [
    "MAX_KEY_BYTES",
    "MAX_METADATA_BYTES",
    "MAX_NAMESPACE_BYTES",
    "MAX_PAGE_KEYS",
    "MAX_VALUE_BYTES",
    "Entry",
    "InvalidArgument",
    "InvalidCursor",
    "InvalidKey",
    "InvalidLimit",
    "Key",
    "MemoryStore",
    "Page",
    "SQLiteStore",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreError",
    "StoreFailed",
    "StoreUnreadable",
    "TooLarge",
]
