"""The contract: what a worker author sees, and what host and guest agree on."""

from belem.sdk.errors import BelemError, SystemFault, UserError
from belem.sdk.ops import Answer, Call, Json, Rejection

__all__ = ["Answer", "BelemError", "Call", "Json", "Rejection", "SystemFault", "UserError"]
