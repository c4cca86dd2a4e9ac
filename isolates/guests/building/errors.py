"""How a build can fail."""

from typing import ClassVar

from belem.sdk.errors import SystemFault

__all__ = ["BuildFailed"]


class BuildFailed(SystemFault):
    """A guest could not be built. The message says what to do next."""

    code: ClassVar[str] = "isolate/guest-build-failed"
