"""What a host has whatever its processes: its directory, ports, token, versions and the daemon."""

import contextlib
import fcntl
import os
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from starlette.requests import Request
from starlette.responses import Response

from belem.bindings.ai import AIBinding, InferenceClient
from belem.runtime.control import (
    Binding,
    RunModel,
    SQLiteVersionStore,
    VersionStore,
    ensure_token,
)
from belem.runtime.control.models import rest_models
from belem.runtime.server.daemon import InferenceProcess
from belem.runtime.server.journal import daemon_line, daemon_state
from belem.runtime.server.serving import Listener, bind
from belem.runtime.server.settings import AUTO, ServeSettings
from belem.sdk import BelemError
from belem.sdk.folders import user_cache_directory

__all__ = ["DataDirectoryBusy", "Premises", "open_premises"]


class DataDirectoryBusy(BelemError):
    """Another host runs on the data directory."""

    code: ClassVar[str] = "server/data-directory-busy"
    side: ClassVar[Literal["user", "system"]] = "user"


@dataclass(frozen=True, slots=True)
class Premises:
    """What is open for as long as the host runs. `data_listener` listens already."""

    settings: ServeSettings
    data: Path
    token_file: Path
    token: str
    data_listener: Listener
    control_listener: Listener
    store: VersionStore
    inference_address: str
    start_inference: Callable[[], None]
    run_model: RunModel

    @property
    def kv_file(self) -> Path:
        """Where KV is kept."""
        return self.data / "kv.sqlite"

    def start_inference_for(self, bindings: tuple[Binding, ...]) -> None:
        """Start the daemon if one of the bindings needs it."""
        if any(binding.type == "ai" for binding in bindings):
            self.start_inference()

    def shared_code_cache(self) -> Path:
        """Return where compiled code goes that dev uses too: an engine compiles once on a machine.

        A service's user may have no home to write to; the data directory always is.
        """
        shared = user_cache_directory() / "isolates"
        try:
            shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return self.data / "cache"
        return shared if os.access(shared, os.W_OK) else self.data / "cache"


@contextlib.asynccontextmanager
async def open_premises(settings: ServeSettings) -> AsyncGenerator[Premises, None]:
    """Take the data directory and the ports; give them back at the end of the block."""
    data = settings.data.resolve()
    token_file = settings.token_file or data / "token"
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_owned(data))
        token = ensure_token(token_file)
        data_listener = bind(settings.host, settings.port)
        stack.callback(data_listener.sock.close)
        control_listener = bind(settings.control_host, settings.control_port, flag="--control-port")
        stack.callback(control_listener.sock.close)
        store = SQLiteVersionStore(data)
        stack.push_async_callback(store.aclose)
        address, start = settings.inference, _nothing
        if settings.inference == AUTO:
            daemon = InferenceProcess(on_line=daemon_line, on_state=daemon_state)
            await stack.enter_async_context(daemon)
            address, start = daemon.address, daemon.start
        client = await stack.enter_async_context(InferenceClient(address))
        yield Premises(
            settings=settings,
            data=data,
            token_file=token_file,
            token=token,
            data_listener=data_listener,
            control_listener=control_listener,
            store=store,
            inference_address=address,
            start_inference=start,
            run_model=_starting(start, rest_models(AIBinding(client))),
        )


@contextlib.contextmanager
def _owned(data: Path) -> Generator[None, None, None]:
    """Hold the data directory's lock; the system lets go of it however this process ends."""
    data.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DataDirectoryBusy(
                f"Another host runs on {data}. Stop it, or choose another directory with --data."
            ) from error
        yield
    finally:
        os.close(descriptor)


def _starting(start: Callable[[], None], run_model: RunModel) -> RunModel:
    async def run(request: Request, model: str) -> Response:
        start()
        return await run_model(request, model)

    return run


def _nothing() -> None:
    """The daemon is somebody else's."""
