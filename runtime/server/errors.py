"""What goes wrong between a client and a worker."""

from typing import ClassVar, Literal

from belem.sdk import BelemError, SystemFault, UserError

__all__ = [
    "BadReply",
    "BadRequest",
    "BodyTooLarge",
    "ClientGone",
    "HeadersTooLarge",
    "MethodNotAllowed",
    "NoSuchWorker",
    "PortInUse",
    "RequestTimeout",
    "ResponseBroken",
    "UrlTooLong",
    "WorkerUnavailable",
]


class BadRequest(UserError):
    """The request cannot be turned into a fetch event."""

    code: ClassVar[str] = "server/bad-request"


class MethodNotAllowed(UserError):
    """Workers never sees this method."""

    code: ClassVar[str] = "server/method-not-allowed"
    status: ClassVar[int] = 405


class RequestTimeout(UserError):
    """The client stopped sending its request."""

    code: ClassVar[str] = "server/request-timeout"
    status: ClassVar[int] = 408


class BodyTooLarge(UserError):
    """The body is over the limit."""

    code: ClassVar[str] = "server/body-too-large"
    status: ClassVar[int] = 413


class UrlTooLong(UserError):
    """The URL is over the limit."""

    code: ClassVar[str] = "server/url-too-long"
    status: ClassVar[int] = 414


class HeadersTooLarge(UserError):
    """The headers are over the limit."""

    code: ClassVar[str] = "server/headers-too-large"
    status: ClassVar[int] = 431


class NoSuchWorker(UserError):
    """No worker is deployed under this host and path."""

    code: ClassVar[str] = "server/no-such-worker"
    status: ClassVar[int] = 404


class WorkerUnavailable(SystemFault):
    """The worker has no isolate to take this request just now."""

    code: ClassVar[str] = "server/worker-unavailable"


class BadReply(UserError):
    """The worker answered with something that HTTP cannot carry."""

    code: ClassVar[str] = "server/bad-reply"
    status: ClassVar[int] = 500


class PortInUse(BelemError):
    """Another process listens on the address."""

    code: ClassVar[str] = "server/port-in-use"
    side: ClassVar[Literal["user", "system"]] = "user"


class ClientGone(BelemError):
    """The client closed the connection before its response was complete. Never shown to anybody."""

    code: ClassVar[str] = "server/client-gone"
    status: ClassVar[int] = 499


class ResponseBroken(BelemError):
    """The body failed after its headers were sent: all that is left is to break the connection."""

    code: ClassVar[str] = "server/response-broken"
