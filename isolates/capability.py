"""What host ops dispatch to: one object for each name in `env`, and the built-in ones."""

from typing import Protocol

from belem.sdk.ops import Answer, Call

__all__ = ["Capability"]


class Capability(Protocol):
    """Something a worker may call through a host op.

    Raise `Rejection` (or any `BelemError`, which reaches the guest as a plain Error with its
    message) to reject the guest's promise; any other exception is logged here and reaches the guest
    only as "internal error". The task is cancelled when the guest cancels the op, and with the
    isolate.
    """

    async def __call__(self, call: Call, /) -> Answer: ...
