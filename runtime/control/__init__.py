"""The control plane: versions and which are live, kept in a store, changed through an HTTP API."""

from belem.runtime.control.api import RenderMetrics, RunModel, control_api
from belem.runtime.control.deployments import Deployed, Deployments, Prepared, Stage
from belem.runtime.control.store import SQLiteVersionStore
from belem.runtime.control.tail_filter import TailFilter
from belem.runtime.control.tails import Tail, Tails
from belem.runtime.control.tokens import ensure_token, read_token
from belem.runtime.control.versions import (
    Binding,
    Upload,
    Version,
    VersionStore,
    WorkerSummary,
    check_worker_name,
)

__all__ = [
    "Binding",
    "Deployed",
    "Deployments",
    "Prepared",
    "RenderMetrics",
    "RunModel",
    "SQLiteVersionStore",
    "Stage",
    "Tail",
    "TailFilter",
    "Tails",
    "Upload",
    "Version",
    "VersionStore",
    "WorkerSummary",
    "check_worker_name",
    "control_api",
    "ensure_token",
    "read_token",
]
