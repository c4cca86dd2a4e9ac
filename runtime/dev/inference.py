"""The inference daemon of a dev server: started when a worker needs it, and talked about."""

import asyncio
from collections.abc import Sequence

from belem.bindings.ai import AIError, InferenceClient
from belem.runtime.dev.console import DevConsole
from belem.runtime.server import AUTO, DaemonState, InferenceProcess

__all__ = ["Inference"]

_SHOWN_NAMES = 3


class Inference:
    """A daemon of our own, or somebody's at an address."""

    def __init__(self, address: str, console: DevConsole) -> None:
        self._console = console
        self._tasks: set[asyncio.Task[None]] = set()
        self._introduced = False
        self._process: InferenceProcess | None = None
        if address == AUTO:
            self._process = InferenceProcess(on_line=self._say, on_state=self._state)
        self.address = self._process.address if self._process else address
        where = "on this machine" if self._process else f"at {address}"
        self.description = f"the inference daemon {where}"

    def start(self) -> None:
        """Start the daemon, unless it was started before or is somebody else's."""
        if self._process is not None:
            self._process.start()
        elif not self._introduced:
            self._introduce()

    async def aclose(self) -> None:
        """End the daemon if it is ours."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            await self._process.aclose()

    def _say(self, line: str) -> None:
        self._console.note(f"inference: {line}")

    def _state(self, state: DaemonState) -> None:
        match state.kind:
            case "starting":
                self._console.note("inference: starting the daemon")
            case "ready":
                self._console.note(f"inference: {state.detail}")
                if not self._introduced:
                    self._introduce()
            case "ended":
                self._console.warn(f"inference: the daemon {state.detail}")
            case "stopped":
                pass

    def _introduce(self) -> None:
        """Say once which weights answer for the names that workers use."""
        self._introduced = True
        task = asyncio.create_task(self._list())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _list(self) -> None:
        try:
            async with InferenceClient(self.address) as client:
                models = await client.list_models()
        except AIError as error:
            self._console.warn(f"inference: {error.message}")
            return
        names: dict[str, list[str]] = {}
        for model in models:
            if model.stand_in and model.served_by:
                names.setdefault(model.served_by, []).append(model.name)
        for weights, stood_for in names.items():
            self._console.note(f"inference: {weights} answers for {_shortened(stood_for)}")


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return shown if more <= 0 else f"{shown} and {more} more (belem ai models lists them)"
