"""Servables: weights on their way into memory and out of it, and the manager that holds them."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from belem.runtime.inference.device import Device, DeviceThread
from belem.runtime.inference.errors import Draining, InferenceFailed, WeightsMissing
from belem.runtime.inference.memory import resident_bytes
from belem.runtime.inference.store import Entry
from belem.runtime.inference.text.text_model import TextLimits, TextModel
from belem.sdk.errors import BelemError

__all__ = ["LoadModel", "Servable", "ServableManager", "ServableState", "load_text_model"]

_MB: Final = 1 << 20


class ServableState(StrEnum):
    """TensorFlow Serving's states. They move forward only; a retry is a new servable."""

    START = "START"  # known, nothing done
    LOADING = "LOADING"
    AVAILABLE = "AVAILABLE"  # published after it is true: loaded and warmed up
    UNLOADING = "UNLOADING"  # published before it is true: nobody may take it any more
    END = "END"  # unloaded, or it could not be loaded


_ORDER: Final = list(ServableState)


@dataclass(eq=False)
class Servable:
    """One set of weights. `settled` is set once it is AVAILABLE or has come to its END."""

    name: str
    state: ServableState = ServableState.START
    model: TextModel | None = None
    error: BelemError | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def move(self, state: ServableState) -> None:
        """Go forward to a state."""
        if _ORDER.index(state) <= _ORDER.index(self.state):
            raise InferenceFailed(f"{self.name} cannot go from {self.state} to {state}.")
        self.state = state
        if state in (ServableState.AVAILABLE, ServableState.END):
            self.settled.set()


class LoadModel(Protocol):
    """Loads weights. It blocks, on a thread of its own."""

    def __call__(self, path: Path, /) -> TextModel:
        """Return the model, warmed up for the usual lengths."""
        ...


def load_text_model(
    path: Path, *, device: Device, thread: DeviceThread, limits: TextLimits
) -> TextModel:
    """Load a text model and compile what its first requests need."""
    model = TextModel(path, device=device, thread=thread, limits=limits)
    model.warm_up()
    return model


class ServableManager:
    """Loads servables when they are first asked for, each once, and keeps them.

    `say` is given a line for people about every change.
    """

    def __init__(self, load: LoadModel, *, say: Callable[[str], None]) -> None:
        self._load = load
        self._say = say
        self._servables: dict[str, Servable] = {}
        self._loading = ThreadPoolExecutor(1, thread_name_prefix="belem-load")
        self._tasks = asyncio.TaskGroup()
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        for servable in self._servables.values():
            if servable.model is not None and servable.state is ServableState.AVAILABLE:
                servable.move(ServableState.UNLOADING)
                servable.model.close()
                servable.move(ServableState.END)
        # A load cannot be interrupted; it ends by itself and is then thrown away.
        self._loading.shutdown(wait=False, cancel_futures=True)
        await self._tasks.__aexit__(kind, error, trace)

    def find(self, name: str) -> Servable | None:
        """Return the servable of these weights, if it was ever asked for."""
        return self._servables.get(name)

    async def acquire(self, entry: Entry) -> TextModel:
        """Return the model behind an entry, loading it first where need be."""
        servable = self.start(entry)
        await servable.settled.wait()
        if servable.model is not None and servable.state is ServableState.AVAILABLE:
            return servable.model
        raise servable.error or Draining()

    def start(self, entry: Entry) -> Servable:
        """Begin to load an entry's weights in the background, unless that was done."""
        if self._closed:
            raise Draining
        servable = self._servables.get(entry.served_by)
        if servable is None or servable.state is ServableState.END:
            if entry.file is None:
                raise WeightsMissing(entry.name, entry.served_by)
            servable = self._servables[entry.served_by] = Servable(entry.served_by)
            self._tasks.create_task(self._bring(servable, entry.file))
        return servable

    async def _bring(self, servable: Servable, file: Path) -> None:
        servable.move(ServableState.LOADING)
        self._say(f"{servable.name}: loading {file.name}")
        started_s = time.monotonic()
        loop = asyncio.get_running_loop()
        try:
            model = await loop.run_in_executor(self._loading, partial(self._load, file))
        except BelemError as error:
            self._end(servable, error)
        except Exception as error:  # the load's boundary: waiters must hear of it, whatever it is
            self._end(servable, InferenceFailed(f"{type(error).__name__}: {error}"))
        else:
            self._publish(servable, model, time.monotonic() - started_s)

    def _publish(self, servable: Servable, model: TextModel, took_seconds: float) -> None:
        if self._closed:
            model.close()
            self._end(servable, Draining())
            return
        servable.model = model
        servable.move(ServableState.AVAILABLE)
        self._say(
            f"{servable.name}: available after {took_seconds:.1f} s, "
            f"{model.backend.bytes // _MB} MB; the daemon holds {resident_bytes() // _MB} MB"
        )
        model.warm_up_when_idle()

    def _end(self, servable: Servable, error: BelemError) -> None:
        servable.error = error
        servable.move(ServableState.END)
        self._say(f"{servable.name}: {error.message}")
