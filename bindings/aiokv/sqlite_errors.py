"""SQLite's errors in the library's words: one table, by primary result code."""

import sqlite3
from typing import Final

from belem.bindings.aiokv.errors import StoreBusy, StoreError, StoreFailed, StoreUnreadable

__all__ = ["translate"]

_BY_RESULT_CODE: Final[dict[int, tuple[type[StoreError], str]]] = {
    sqlite3.SQLITE_BUSY: (StoreBusy, "Another process keeps the store locked"),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "Another connection keeps the store locked"),
    sqlite3.SQLITE_CORRUPT: (StoreUnreadable, "The store's file is damaged"),
    sqlite3.SQLITE_NOTADB: (StoreUnreadable, "The file is not a store"),
    sqlite3.SQLITE_SCHEMA: (StoreUnreadable, "The store's tables changed"),
    sqlite3.SQLITE_FULL: (StoreFailed, "The disk is full"),
    sqlite3.SQLITE_READONLY: (StoreFailed, "The store's file cannot be written"),
    sqlite3.SQLITE_PERM: (StoreFailed, "The store's file may not be used"),
    sqlite3.SQLITE_CANTOPEN: (StoreFailed, "The store's file cannot be opened"),
    sqlite3.SQLITE_IOERR: (StoreFailed, "The device under the store fails"),
    sqlite3.SQLITE_NOMEM: (StoreFailed, "Memory is short"),
}


def translate(error: Exception) -> Exception:
    """Return the library's error for one of SQLite's or the system's; others as they are."""
    if isinstance(error, sqlite3.Error):
        # The low byte is the primary code; errors of the sqlite3 module itself have none.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        kind, text = _BY_RESULT_CODE.get(code, (StoreFailed, "SQLite refuses"))
        translated: Exception = kind(f"{text}: {error}.")
    elif isinstance(error, OSError):
        translated = StoreFailed(f"The store's file cannot be used: {error}.")
    else:
        return error
    translated.__cause__ = error
    return translated
