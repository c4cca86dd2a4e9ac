"""Many host processes: for many cores, and for tenants that do not trust each other."""

from belem.runtime.server.fleet.fleet import fleet

__all__ = ["fleet"]
