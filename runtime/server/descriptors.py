"""How many files and connections this process may have open."""

import contextlib
import resource
from typing import Final

__all__ = ["allow_many_descriptors"]

_ENOUGH: Final = 1 << 16  # a hard limit may be a billion, which some libraries loop over


def allow_many_descriptors() -> None:
    """Raise the limit as far as the system lets us: shells begin with 1,024, and clients are many.

    Connections past it are closed as they come; those that are open go on.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):  # then it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
