"""Workers AI's errors, and the one table that maps the daemon's gRPC statuses to them."""

from collections.abc import Mapping
from typing import ClassVar, Final

import grpc
import grpc.aio

from belem.sdk.errors import BelemError
from belem.sdk.ops import Json

__all__ = [
    "ABORTED",
    "BAD_INPUT",
    "CAPACITY",
    "CONTEXT_OVERFLOW",
    "GRPC_STATUSES",
    "HTTP_STATUSES",
    "INFERENCE_FAILED",
    "INTERNAL",
    "LORA_UNSUPPORTED",
    "MISSING_BODY",
    "NO_SUCH_MODEL",
    "TIMEOUT",
    "TOO_LARGE",
    "AIError",
    "daemon_unreachable",
    "from_rpc",
    "is_lost_connection",
]

# Workers AI's internal codes, as its documentation and its live answers have them.
MISSING_BODY: Final = 3003
TOO_LARGE: Final = 3006
TIMEOUT: Final = 3007
ABORTED: Final = 3008
CAPACITY: Final = 3040
INTERNAL: Final = 3043
LORA_UNSUPPORTED: Final = 5005
BAD_INPUT: Final = 5006
NO_SUCH_MODEL: Final = 5007
INFERENCE_FAILED: Final = 5012
CONTEXT_OVERFLOW: Final = 5021

HTTP_STATUSES: Final[Mapping[int, int]] = {
    MISSING_BODY: 400,
    TOO_LARGE: 413,
    TIMEOUT: 408,
    ABORTED: 408,
    CAPACITY: 429,
    INTERNAL: 500,
    LORA_UNSUPPORTED: 405,
    BAD_INPUT: 400,
    NO_SUCH_MODEL: 400,
    INFERENCE_FAILED: 529,
    CONTEXT_OVERFLOW: 413,
}

# What a status of gRPC means where the daemon gave no `belem-code` with it, and what a worker may
# read. The daemon's own text is passed on only beside a `belem-code`: else it is not for users.
GRPC_STATUSES: Final[Mapping[grpc.StatusCode, tuple[int, str]]] = {
    grpc.StatusCode.CANCELLED: (ABORTED, "Request was aborted"),
    grpc.StatusCode.UNKNOWN: (INTERNAL, "Internal server error"),
    grpc.StatusCode.INVALID_ARGUMENT: (BAD_INPUT, "Error: the model refused the input"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (TIMEOUT, "Request timeout"),
    grpc.StatusCode.NOT_FOUND: (NO_SUCH_MODEL, "No such model or task"),
    grpc.StatusCode.ALREADY_EXISTS: (INTERNAL, "Internal server error"),
    grpc.StatusCode.PERMISSION_DENIED: (INTERNAL, "Internal server error"),
    grpc.StatusCode.UNAUTHENTICATED: (INTERNAL, "Internal server error"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (
        CAPACITY,
        "Capacity temporarily exceeded, please try again.",
    ),
    grpc.StatusCode.FAILED_PRECONDITION: (INTERNAL, "Internal server error"),
    grpc.StatusCode.ABORTED: (ABORTED, "Request was aborted"),
    grpc.StatusCode.OUT_OF_RANGE: (CONTEXT_OVERFLOW, "The input exceeds the context window"),
    grpc.StatusCode.UNIMPLEMENTED: (INTERNAL, "The inference daemon is of another version"),
    grpc.StatusCode.INTERNAL: (INTERNAL, "Internal server error"),
    grpc.StatusCode.UNAVAILABLE: (
        INFERENCE_FAILED,
        "The inference daemon went away before the answer was complete, please try again.",
    ),
    grpc.StatusCode.DATA_LOSS: (INTERNAL, "Internal server error"),
}


class AIError(BelemError):
    """An inference that failed, as Workers AI would tell it."""

    code: ClassVar[str] = "ai/inference-failed"
    name: ClassVar[str] = "AiError"

    def __init__(self, internal_code: int, description: str) -> None:
        # A description may quote a guest's strings, whose lone surrogates could not be sent on.
        self.description = description.encode(errors="replace").decode()
        self.internal_code = internal_code
        super().__init__(f"{internal_code}: {self.description}")
        self.http_status = HTTP_STATUSES[internal_code]

    def body(self) -> dict[str, Json]:
        """Return the error as a raw response carries it, and as the guest half reads it."""
        return {
            "name": self.name,
            "internalCode": self.internal_code,
            "httpCode": self.http_status,
            "message": self.long_message,
            "description": self.description,
        }

    @property
    def long_message(self) -> str:
        """Return the text that the REST API gives: with the name, without the code."""
        kind = "Bad input: " if self.internal_code == BAD_INPUT else ""
        return f"{self.name}: {kind}{self.description}"


def from_rpc(error: grpc.aio.AioRpcError) -> AIError:
    """Turn a failed call into Workers AI's error."""
    internal_code, text = GRPC_STATUSES[error.code()]
    given = _belem_code(error)
    if given is None:
        return AIError(internal_code, text)
    return AIError(given, error.details() or text)


def daemon_unreachable() -> AIError:
    """Return the error for a daemon that no connection could be made to in time."""
    return AIError(INFERENCE_FAILED, "The inference daemon cannot be reached, please try again.")


def is_lost_connection(error: grpc.aio.AioRpcError) -> bool:
    """Tell whether the connection failed, rather than the daemon having refused."""
    return error.code() is grpc.StatusCode.UNAVAILABLE and _belem_code(error) is None


def _belem_code(error: grpc.aio.AioRpcError) -> int | None:
    for key, value in error.trailing_metadata():
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        if key == "belem-code" and text.isascii() and text.isdigit():
            return int(text) if int(text) in HTTP_STATUSES else None
    return None
