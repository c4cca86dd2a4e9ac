"""The control API's errors, with Cloudflare's numbers, so that existing clients understand them."""

from typing import ClassVar

from belem.sdk import BelemError, SystemFault, UserError

__all__ = [
    "ApiError",
    "BadMetadata",
    "BadTailFilter",
    "BadWorkerName",
    "NoHandlers",
    "NoSuchRoute",
    "NotAuthorized",
    "ScriptNotFound",
    "StoreFault",
    "TooManyTails",
    "TooManyVariables",
    "UnknownBinding",
    "UploadTooLarge",
    "ValidationFailed",
    "VariableTooLarge",
    "api_code",
]


class ApiError(UserError):
    """A request that the control API refuses; `number` is what Cloudflare's API would say."""

    code: ClassVar[str] = "control/bad-request"
    number: ClassVar[int] = 10001


class NotAuthorized(ApiError):
    """The bearer token is missing or wrong."""

    code: ClassVar[str] = "control/not-authorized"
    status: ClassVar[int] = 401
    number: ClassVar[int] = 10000


class NoSuchRoute(ApiError):
    """The API has no such path or method."""

    code: ClassVar[str] = "control/no-such-route"
    status: ClassVar[int] = 404
    number: ClassVar[int] = 7003


class BadMetadata(ApiError):
    """The upload cannot be read: not multipart, no metadata, a field of the wrong kind."""

    code: ClassVar[str] = "control/bad-metadata"
    number: ClassVar[int] = 10006


class ScriptNotFound(ApiError):
    """No worker has this name."""

    code: ClassVar[str] = "control/script-not-found"
    status: ClassVar[int] = 404
    number: ClassVar[int] = 10007


class BadWorkerName(ApiError):
    """The name cannot be part of a host name."""

    code: ClassVar[str] = "control/bad-worker-name"
    number: ClassVar[int] = 10016


class ValidationFailed(ApiError):
    """The worker's top level does not run."""

    code: ClassVar[str] = "control/validation-failed"
    number: ClassVar[int] = 10021


class UploadTooLarge(ApiError):
    """The upload is over the limit."""

    code: ClassVar[str] = "control/upload-too-large"
    status: ClassVar[int] = 413
    number: ClassVar[int] = 10027


class VariableTooLarge(ApiError):
    """A variable or secret is over the limit."""

    code: ClassVar[str] = "control/variable-too-large"
    number: ClassVar[int] = 10054


class TooManyVariables(ApiError):
    """The upload has more variables and secrets than a worker may have."""

    code: ClassVar[str] = "control/too-many-variables"
    number: ClassVar[int] = 10055


class UnknownBinding(ApiError):
    """A binding of a kind that this host does not have, or with a field missing."""

    code: ClassVar[str] = "control/unknown-binding"
    number: ClassVar[int] = 10056


class BadTailFilter(ApiError):
    """A filter of a tail cannot be understood."""

    code: ClassVar[str] = "control/bad-tail-filter"


class TooManyTails(ApiError):
    """No more tails can be followed at once."""

    code: ClassVar[str] = "control/too-many-tails"
    status: ClassVar[int] = 429
    number: ClassVar[int] = 10057


class NoHandlers(ApiError):
    """The main module exports no handler."""

    code: ClassVar[str] = "control/no-handlers"
    number: ClassVar[int] = 10068


class StoreFault(SystemFault):
    """The version store cannot be read or written."""

    code: ClassVar[str] = "control/store-fault"


def api_code(error: BelemError) -> int:
    """Return the number for the envelope's `errors[].code`."""
    return error.number if isinstance(error, ApiError) else 10013
