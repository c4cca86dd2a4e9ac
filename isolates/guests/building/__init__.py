"""How a guest's wasm is made from pinned sources, and kept by content."""

from belem.isolates.guests.building.errors import BuildFailed
from belem.isolates.guests.building.outputs import Outputs
from belem.isolates.guests.building.patches import Replacement, apply
from belem.isolates.guests.building.sources import Sdist, Sources
from belem.isolates.guests.building.steps import PlainSteps, Steps, steps_for_terminal
from belem.isolates.guests.building.zig import Unit, Zig

__all__ = [
    "BuildFailed",
    "Outputs",
    "PlainSteps",
    "Replacement",
    "Sdist",
    "Sources",
    "Steps",
    "Unit",
    "Zig",
    "apply",
    "steps_for_terminal",
]
