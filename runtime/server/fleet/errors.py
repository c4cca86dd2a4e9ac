"""What goes wrong between a supervisor and its host processes, and errors as they travel there."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from belem.bindings.aiokv import StoreError
from belem.runtime.control.errors import ApiError, StoreFault
from belem.sdk import BelemError, Json, SystemFault

__all__ = [
    "ChannelBroken",
    "HostLost",
    "HostSilent",
    "HostsUnavailable",
    "RemoteFault",
    "error_from_wire",
    "error_to_wire",
]

Travelling = BelemError | StoreError


class ChannelBroken(SystemFault):
    """What came over the channel is no message."""

    code: ClassVar[str] = "fleet/channel-broken"


class HostLost(SystemFault):
    """The host process ended before it answered."""

    code: ClassVar[str] = "fleet/host-lost"


class HostSilent(SystemFault):
    """The host process did not answer in time."""

    code: ClassVar[str] = "fleet/host-silent"


class HostsUnavailable(SystemFault):
    """No host process runs that could do the work."""

    code: ClassVar[str] = "fleet/hosts-unavailable"


class RemoteFault(SystemFault):
    """The other process failed in a way that has no class here."""

    code: ClassVar[str] = "fleet/remote-fault"


def error_to_wire(error: Travelling) -> Mapping[str, Json]:
    """Return the error as JSON."""
    return {"code": error.code, "message": str(error)}


def error_from_wire(value: Json) -> Travelling:
    """Return the error that was sent; one of an unknown kind becomes a `RemoteFault`."""
    if not isinstance(value, Mapping):
        raise ChannelBroken("An error came that is no JSON object.")
    code, message = value.get("code"), value.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        raise ChannelBroken("An error came without a code or a message.")
    return _KINDS.get(code, RemoteFault)(message)


def _kinds(base: type[Travelling]) -> Iterator[type[Travelling]]:
    yield base
    for kind in base.__subclasses__():
        yield from _kinds(kind)


# By code: the control plane's refusals and the KV store's errors mean something to who gets them.
_KINDS: Final[Mapping[str, type[Travelling]]] = {
    kind.code: kind
    for base in (ApiError, StoreFault, StoreError, HostLost, HostSilent, HostsUnavailable)
    for kind in _kinds(base)
}
