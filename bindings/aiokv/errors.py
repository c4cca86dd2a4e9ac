"""Every error a store raises on purpose; nothing here knows who uses the library."""

from typing import ClassVar

__all__ = [
    "InvalidArgument",
    "InvalidCursor",
    "InvalidKey",
    "InvalidLimit",
    "StoreBusy",
    "StoreClosed",
    "StoreError",
    "StoreFailed",
    "StoreUnreadable",
    "TooLarge",
]


class StoreError(Exception):
    """Base of the tree. `code` is stable and safe to match on."""

    code: ClassVar[str] = "aiokv/error"


class InvalidArgument(StoreError, ValueError):
    """The caller asked for something that no store can do."""

    code: ClassVar[str] = "aiokv/invalid-argument"


class InvalidKey(InvalidArgument):
    """A key or namespace is empty, too long or not valid Unicode."""

    code: ClassVar[str] = "aiokv/invalid-key"


class InvalidCursor(InvalidArgument):
    """A cursor did not come from `list`, or was damaged on the way."""

    code: ClassVar[str] = "aiokv/invalid-cursor"


class InvalidLimit(InvalidArgument):
    """A page size is outside its range."""

    code: ClassVar[str] = "aiokv/invalid-limit"


class TooLarge(InvalidArgument):
    """A value, its metadata, or the values of one `get_many` together are over the limit."""

    code: ClassVar[str] = "aiokv/too-large"


class StoreClosed(StoreError):
    """The store was not opened, or is closed."""

    code: ClassVar[str] = "aiokv/closed"


class StoreBusy(StoreError):
    """Another process kept the store locked for longer than the busy timeout."""

    code: ClassVar[str] = "aiokv/busy"


class StoreUnreadable(StoreError):
    """The file is damaged, another program's, or of a version this build cannot read."""

    code: ClassVar[str] = "aiokv/unreadable"


class StoreFailed(StoreError):
    """The storage underneath refused: full disk, missing permission, failing device."""

    code: ClassVar[str] = "aiokv/failed"
