"""The data plane: HTTP requests in, fetch events to isolates, pages for what fails on the way."""

from belem.runtime.server.compose import Composer, open_composer
from belem.runtime.server.daemon import DaemonState, InferenceFailed, InferenceProcess
from belem.runtime.server.dispatch import Dispatch, Explain, RequestEvent, Route, Router, Target
from belem.runtime.server.errors import PortInUse
from belem.runtime.server.failures import Failure, Outcome, describe
from belem.runtime.server.live import LiveWorker
from belem.runtime.server.logs import EventFormatter, set_up_logging
from belem.runtime.server.pages import Explanation, Page, render
from belem.runtime.server.pool import PoolBounds, Revision
from belem.runtime.server.requests import RequestLimits
from belem.runtime.server.serve import serve
from belem.runtime.server.serving import Listener, bind, serving
from belem.runtime.server.settings import (
    AUTO,
    MAX_PROCESSES,
    MAX_TENANT_PROCESSES,
    BadSettings,
    Isolation,
    ServeSettings,
    Started,
)
from belem.runtime.server.stage import LiveStage

__all__ = [
    "AUTO",
    "MAX_PROCESSES",
    "MAX_TENANT_PROCESSES",
    "BadSettings",
    "Composer",
    "DaemonState",
    "Dispatch",
    "EventFormatter",
    "Explain",
    "Explanation",
    "Failure",
    "InferenceFailed",
    "InferenceProcess",
    "Isolation",
    "Listener",
    "LiveStage",
    "LiveWorker",
    "Outcome",
    "Page",
    "PoolBounds",
    "PortInUse",
    "RequestEvent",
    "RequestLimits",
    "Revision",
    "Route",
    "Router",
    "ServeSettings",
    "Started",
    "Target",
    "bind",
    "describe",
    "open_composer",
    "render",
    "serve",
    "serving",
    "set_up_logging",
]
