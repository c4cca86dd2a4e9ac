"""What can go wrong in the daemon, and the one table that says how gRPC tells it."""

from collections.abc import Mapping
from typing import ClassVar, Final

import grpc

from belem.runtime.inference.store import CatalogueError, UnknownModel
from belem.sdk.errors import BelemError, SystemFault, UserError

__all__ = [
    "GRPC_STATUSES",
    "AddressInUse",
    "BadModelFile",
    "BadRequest",
    "BadTemplate",
    "ContextOverflow",
    "DeviceUnavailable",
    "Draining",
    "InferenceFailed",
    "InsufficientMemory",
    "QueueFull",
    "WeightsMissing",
    "grpc_status",
]


class AddressInUse(SystemFault):
    """Another process listens at the address."""

    code: ClassVar[str] = "inference/address-in-use"


class DeviceUnavailable(UserError):
    """The device that was asked for is not in this machine."""

    code: ClassVar[str] = "inference/no-such-device"


class BadModelFile(SystemFault):
    """A file of weights is damaged, hostile or of a kind that is not supported."""

    code: ClassVar[str] = "inference/bad-model-file"


class BadTemplate(SystemFault):
    """A model's chat template is wrong, or took too long or too much."""

    code: ClassVar[str] = "inference/bad-template"


class InsufficientMemory(SystemFault):
    """The weights and their cache do not fit into the memory that is free."""

    code: ClassVar[str] = "inference/insufficient-memory"


class WeightsMissing(UserError):
    """The catalogue has the name, but its weights have not been pulled."""

    code: ClassVar[str] = "inference/weights-missing"

    def __init__(self, name: str, served_by: str) -> None:
        super().__init__(
            f"The weights of {name} ({served_by}) are not on this machine; "
            f"`belem ai pull {served_by}` brings them."
        )


class BadRequest(UserError):
    """A field of a request is missing or out of its range."""

    code: ClassVar[str] = "inference/bad-request"


class ContextOverflow(UserError):
    """The prompt leaves no room for an answer in the model's context."""

    code: ClassVar[str] = "inference/context-overflow"
    status: ClassVar[int] = 413

    def __init__(self, *, context_tokens: int, prompt_tokens: int, max_tokens: int) -> None:
        super().__init__(
            f"This model's maximum context length is {context_tokens} tokens. However, you "
            f"requested {prompt_tokens + max_tokens} tokens ({prompt_tokens} in the messages, "
            f"{max_tokens} in the completion). Please reduce the length of the messages or "
            "completion."
        )


class QueueFull(SystemFault):
    """As many requests wait as may."""

    code: ClassVar[str] = "inference/queue-full"
    status: ClassVar[int] = 429

    def __init__(self) -> None:
        super().__init__("Capacity temporarily exceeded, please try again.")


class Draining(SystemFault):
    """The daemon is ending and takes nothing new."""

    code: ClassVar[str] = "inference/draining"

    def __init__(self) -> None:
        super().__init__("The inference daemon is ending, please try again.")


class InferenceFailed(SystemFault):
    """The device could not compute; nothing that the caller sent is to blame."""

    code: ClassVar[str] = "inference/failed"


# The status, and Workers AI's internal code where it has one for the case. Every error that the
# daemon raises while it answers is here; a test walks the tree.
GRPC_STATUSES: Final[Mapping[type[BelemError], tuple[grpc.StatusCode, int]]] = {
    UnknownModel: (grpc.StatusCode.NOT_FOUND, 5007),
    WeightsMissing: (grpc.StatusCode.FAILED_PRECONDITION, 5007),
    CatalogueError: (grpc.StatusCode.FAILED_PRECONDITION, 3043),
    BadRequest: (grpc.StatusCode.INVALID_ARGUMENT, 5006),
    ContextOverflow: (grpc.StatusCode.OUT_OF_RANGE, 5021),
    QueueFull: (grpc.StatusCode.RESOURCE_EXHAUSTED, 3040),
    Draining: (grpc.StatusCode.UNAVAILABLE, 3040),
    BadModelFile: (grpc.StatusCode.FAILED_PRECONDITION, 5012),
    BadTemplate: (grpc.StatusCode.FAILED_PRECONDITION, 5012),
    InsufficientMemory: (grpc.StatusCode.RESOURCE_EXHAUSTED, 5012),
    InferenceFailed: (grpc.StatusCode.INTERNAL, 5012),
    DeviceUnavailable: (grpc.StatusCode.FAILED_PRECONDITION, 5012),
    AddressInUse: (grpc.StatusCode.INTERNAL, 3043),
}


def grpc_status(error: BelemError) -> tuple[grpc.StatusCode, int]:
    """Return the status and the `belem-code` of an error, or those of an unforeseen one."""
    for kind in type(error).__mro__:
        if kind in GRPC_STATUSES:
            return GRPC_STATUSES[kind]
    return grpc.StatusCode.INTERNAL, 3043
