"""Many host processes: for many cores, and for tenants that do not trust each other."""

from belem.runtime.server.fleet.fleet import fleet
from belem.runtime.server.fleet.separate import separate

__all__ = ["fleet", "separate"]
