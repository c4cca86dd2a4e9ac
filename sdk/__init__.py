"""The contract: what a worker author sees, and what host and guest agree on. Standard library only."""

from belem.sdk.errors import BelemError, SystemFault, UserError
from belem.sdk.ops import Answer, Call, Json, Rejection

__all__ = ["Answer", "BelemError", "Call", "Json", "Rejection", "SystemFault", "UserError"]
