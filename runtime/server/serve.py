"""A host for workers: the control plane beside one of the ways to run the data plane."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from belem.runtime.control import Deployments, control_api
from belem.runtime.server.descriptors import allow_many_descriptors
from belem.runtime.server.fleet import fleet, separate
from belem.runtime.server.observability import LiveTails, Metrics
from belem.runtime.server.plane import DRAIN_SECONDS, Plane
from belem.runtime.server.premises import Premises, open_premises
from belem.runtime.server.serving import serving
from belem.runtime.server.settings import ServeSettings, Started
from belem.runtime.server.single import single

__all__ = ["serve"]

_host: Final = logging.getLogger("belem.host")


async def serve(
    settings: ServeSettings, *, stop: asyncio.Event, announce: Callable[[Started], None]
) -> None:
    """Run a host until `stop` is set; then finish what is in flight, and close.

    Everything that has to survive a kill is on disk before it is acknowledged, so closing only is
    polite.
    """
    allow_many_descriptors()
    async with open_premises(settings) as premises, _plane(premises) as plane:
        tails = LiveTails(plane.invocations)
        api = control_api(
            Deployments(premises.store, plane.stage),
            token=premises.token,
            run_model=premises.run_model,
            tails=tails,
            render_metrics=Metrics(plane.snapshots),
        )
        # Closed before the plane: a deploy in flight still finds what it deploys to.
        async with serving(api, premises.control_listener, drain_seconds=DRAIN_SECONDS):
            data = premises.data_listener
            announce(
                Started(
                    data.url,
                    data.port,
                    premises.control_listener.url,
                    premises.token_file,
                    plane.workers,
                )
            )
            await stop.wait()
            _host.info("draining")
            tails.close()  # they would never end by themselves


def _plane(premises: Premises) -> AbstractAsyncContextManager[Plane]:
    settings = premises.settings
    if settings.isolation == "process":
        return separate(premises)
    return single(premises) if settings.processes == 1 else fleet(premises)
