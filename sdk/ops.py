"""Host ops as values: what a guest asks for, and what a capability answers."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from belem.sdk.errors import BelemError

__all__ = ["Answer", "Call", "Json", "Rejection"]

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


@dataclass(frozen=True, slots=True)
class Call:
    """One host op. Everything in it was written by a guest: check it before use.

    `body` is what the guest attached: bytes, or an iterator over a stream that the guest is still
    writing. The host closes the iterator when the op is over, read or not.
    """

    method: str
    args: Json
    body: bytes | AsyncIterator[bytes] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an op.

    Bytes in `body` reach JavaScript as a Uint8Array; an iterator becomes a ReadableStream, read as
    the guest reads it and closed (`aclose`) when the guest stops.
    """

    value: Json = None
    body: bytes | AsyncIterator[bytes] | None = None


class Rejection(BelemError):
    """Reject the guest's promise with an error of this class name, message and own properties."""

    code: ClassVar[str] = "op/rejected"

    def __init__(
        self, message: str, *, name: str = "Error", properties: Mapping[str, Json] | None = None
    ) -> None:
        super().__init__(message)
        self.name = name
        self.properties: Mapping[str, Json] = properties or {}
