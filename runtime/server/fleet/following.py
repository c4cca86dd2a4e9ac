"""What a host process tells of its invocations: log, counts, and those that are followed."""

from collections.abc import Callable, Collection, Mapping

from belem.isolates import LogLine
from belem.runtime.server.dispatch import RequestEvent
from belem.runtime.server.fleet.orders import INVOCATION
from belem.runtime.server.journal import console_line
from belem.runtime.server.observability import (
    Invocation,
    Invocations,
    IsolateCounts,
    Snapshot,
    process_snapshot,
)
from belem.sdk import Json

__all__ = ["Following"]

Tell = Callable[[str, Mapping[str, Json]], bool]


class Following:
    """Send on the invocations of the workers that somebody follows on the supervisor.

    `tell` may refuse: who follows sees less of what the channel is too slow for.
    """

    def __init__(
        self,
        invocations: Invocations,
        *,
        write_request: Callable[[RequestEvent], None],
        tell: Tell,
    ) -> None:
        self._invocations = invocations
        self._write_request = write_request
        self._tell = tell
        self._leaves: dict[str, Callable[[], None]] = {}

    def responded(self, event: RequestEvent) -> None:
        """Take a request whose response is over."""
        self._write_request(event)
        self._invocations.responded(event)

    def logged(self, worker: str, line: LogLine) -> None:
        """Take a line of a worker's console."""
        console_line(worker, line)
        self._invocations.logged(worker, line)

    def follow(self, workers: Collection[str]) -> None:
        """Follow these workers, and no others."""
        for worker in self._leaves.keys() - set(workers):
            self._leaves.pop(worker)()
        for worker in workers:
            if worker not in self._leaves:
                self._leaves[worker] = self._invocations.listen(worker, self._send)

    def snapshot(self, process: str, isolates: IsolateCounts) -> Snapshot:
        """Return everything that this process counts."""
        return process_snapshot(self._invocations, isolates, process=process)

    def _send(self, invocation: Invocation) -> None:
        self._tell(INVOCATION, invocation.to_json())
