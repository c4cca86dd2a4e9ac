"""What a worker sees of a failed KV operation, in the words of Workers."""

from typing import ClassVar, Literal

from belem.sdk.ops import Rejection

__all__ = ["InvalidOption", "KVError", "KeyTooLong", "Operation", "StoreUnavailable", "TooLarge"]

Operation = Literal["GET", "GET_BULK", "PUT", "DELETE"]


class KVError(Rejection):
    """Reject with Workers' text: `KV <operation> failed: <status> <reason>`."""

    code: ClassVar[str] = "kv/failed"

    def __init__(self, operation: Operation, reason: str) -> None:
        super().__init__(f"KV {operation} failed: {self.status} {reason}")


class InvalidOption(KVError):
    """An option, a cursor or a key name that KV does not take."""

    code: ClassVar[str] = "kv/invalid-option"
    status: ClassVar[int] = 400
    side: ClassVar[Literal["user", "system"]] = "user"


class TooLarge(KVError):
    """A value, its metadata or a bulk answer is over its limit."""

    code: ClassVar[str] = "kv/too-large"
    status: ClassVar[int] = 413
    side: ClassVar[Literal["user", "system"]] = "user"


class KeyTooLong(KVError):
    """A key or prefix is over its limit."""

    code: ClassVar[str] = "kv/key-too-long"
    status: ClassVar[int] = 414
    side: ClassVar[Literal["user", "system"]] = "user"


class StoreUnavailable(KVError):
    """The store cannot answer now; the worker may try again."""

    code: ClassVar[str] = "kv/unavailable"
    status: ClassVar[int] = 503
