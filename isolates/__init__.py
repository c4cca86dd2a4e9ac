"""How user code runs: guests, images, isolates, limits, scheduling. Knows no HTTP, KV or AI."""

from belem.isolates.capability import Capability
from belem.isolates.errors import (
    CpuLimitExceeded,
    GuestHung,
    GuestInvalid,
    GuestThrew,
    IsolateBusy,
    IsolateLost,
    LoadError,
    MemoryLimitExceeded,
)
from belem.isolates.event import Event, LogLine
from belem.isolates.guest import Guest, Program, Script
from belem.isolates.host import Host
from belem.isolates.image import Image
from belem.isolates.isolate import Isolate
from belem.isolates.limits import Limits
from belem.isolates.reply import KeptLine, Reply
from belem.isolates.usage import Usage

__all__ = [
    "Capability",
    "CpuLimitExceeded",
    "Event",
    "Guest",
    "GuestHung",
    "GuestInvalid",
    "GuestThrew",
    "Host",
    "Image",
    "Isolate",
    "IsolateBusy",
    "IsolateLost",
    "KeptLine",
    "Limits",
    "LoadError",
    "LogLine",
    "MemoryLimitExceeded",
    "Program",
    "Reply",
    "Script",
    "Usage",
]
