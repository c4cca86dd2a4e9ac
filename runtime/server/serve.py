"""A host for workers: data plane, control plane, daemon, and the order of their lives."""

import asyncio
import contextlib
import fcntl
import logging
import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Literal

from starlette.requests import Request
from starlette.responses import Response

from belem.isolates import GuestThrew, LogLine
from belem.runtime.control import (
    Deployments,
    RunModel,
    SQLiteVersionStore,
    VersionStore,
    control_api,
    ensure_token,
)
from belem.runtime.control.models import rest_models
from belem.runtime.server.compose import open_composer
from belem.runtime.server.daemon import DaemonState, InferenceProcess
from belem.runtime.server.dispatch import Dispatch, RequestEvent
from belem.runtime.server.failures import Outcome
from belem.runtime.server.serving import bind, serving
from belem.runtime.server.stage import LiveStage
from belem.sdk import BelemError
from belem.sdk.folders import user_cache_directory

__all__ = ["AUTO", "DataDirectoryBusy", "ServeSettings", "Started", "serve"]

AUTO: Final = "auto"
_DRAIN_SECONDS: Final = 10.0
_WAIT_UNTIL_GRACE_SECONDS: Final = 5.0

_requests: Final = logging.getLogger("belem.requests")
_console: Final = logging.getLogger("belem.console")
_host: Final = logging.getLogger("belem.host")

_LEVELS: Final = {"error": logging.ERROR, "warn": logging.WARNING, "debug": logging.DEBUG}


class DataDirectoryBusy(BelemError):
    """Another host runs on the data directory."""

    code: ClassVar[str] = "server/data-directory-busy"
    side: ClassVar[Literal["user", "system"]] = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What `belem serve` may be told. `inference` is "auto" or a gRPC target."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 8787
    control_host: str = "127.0.0.1"
    control_port: int = 8788
    token_file: Path | None = None
    inference: str = AUTO
    allow_private_fetch: bool = False
    access_log: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """What is said once requests are accepted. `workers` says of each whether it runs."""

    url: str
    port: int
    control_url: str
    token_file: Path
    workers: Mapping[str, bool]


async def serve(
    settings: ServeSettings, *, stop: asyncio.Event, announce: Callable[[Started], None]
) -> None:
    """Run a host until `stop` is set; then finish what is in flight, and close.

    Everything that has to survive a kill is on disk before it is acknowledged, so closing only is
    polite.
    """
    data = settings.data.resolve()
    token_file = settings.token_file or data / "token"
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_owned(data))
        token = ensure_token(token_file)
        listener = bind(settings.host, settings.port)
        stack.callback(listener.sock.close)
        control = bind(settings.control_host, settings.control_port, flag="--control-port")
        stack.callback(control.sock.close)
        store = SQLiteVersionStore(data)
        stack.push_async_callback(store.aclose)
        daemon: InferenceProcess | None = None
        if settings.inference == AUTO:
            daemon = InferenceProcess(on_line=_daemon_line, on_state=_daemon_state)
            await stack.enter_async_context(daemon)
        composer = await stack.enter_async_context(
            open_composer(
                cache_directory=_cache_directory(data),
                kv_file=data / "kv.sqlite",
                inference_address=daemon.address if daemon else settings.inference,
                allow_private_fetch=settings.allow_private_fetch,
            )
        )
        start_daemon = daemon.start if daemon else _nothing
        stage = LiveStage(composer, port=listener.port, log=_console_line, on_ai=start_daemon)
        stack.push_async_callback(stage.drain, grace_seconds=_WAIT_UNTIL_GRACE_SECONDS)
        await _restore(store, stage)
        warming = asyncio.create_task(composer.warm())
        stack.push_async_callback(_over, warming)
        api = control_api(
            Deployments(store, stage),
            token=token,
            run_model=_starting(start_daemon, rest_models(composer.ai)),
        )
        on_request = _log_request if settings.access_log else _log_failure
        dispatch = Dispatch(stage.route, on_request=on_request)
        async with (
            serving(dispatch, listener, drain_seconds=_DRAIN_SECONDS),
            serving(api, control, drain_seconds=_DRAIN_SECONDS),
        ):
            announce(Started(listener.url, listener.port, control.url, token_file, stage.workers))
            await stop.wait()
            _host.info("draining")


async def _restore(store: VersionStore, stage: LiveStage) -> None:
    """Bring every worker's active version back; one that fails is reported, others serve."""
    for summary in await store.list():
        try:
            version = await store.active(summary.name)
            if version is not None:
                await stage.go_live(version, await stage.prepare(version.upload))
        except BelemError as error:
            stage.mark_broken(summary.name)
            _host.error(
                "worker_failed_to_start",
                extra={"worker": summary.name, "version": summary.version_id, "error": str(error)},
            )


def _cache_directory(data: Path) -> Path:
    """Return where compiled code goes: shared with dev, so that a machine compiles the engine once.

    A service's user may have no home to write to; the data directory always is.
    """
    shared = user_cache_directory() / "isolates"
    try:
        shared.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return data / "cache"
    return shared if os.access(shared, os.W_OK) else data / "cache"


async def _over(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


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


def _log_request(event: RequestEvent) -> None:
    if event.error is not None or event.outcome not in (Outcome.OK, Outcome.REFUSED):
        _log_failure(event)
        return
    _requests.info("request", extra=_fields(event))


def _log_failure(event: RequestEvent) -> None:
    if event.outcome in (Outcome.OK, Outcome.REFUSED, Outcome.CANCELED, Outcome.NOT_FOUND):
        return
    fields = _fields(event)
    error = event.error
    if isinstance(error, GuestThrew):
        fields["error"] = error.message
        fields["stack"] = error.stack
        _requests.error("request_failed", extra=fields)
    elif isinstance(error, BelemError):
        fields["error"] = error.message
        _requests.error("request_failed", extra=fields)
    else:
        _requests.error("request_failed", extra=fields, exc_info=error)


def _fields(event: RequestEvent) -> dict[str, object]:
    return {
        "worker": event.worker,
        "method": event.method,
        "path": event.path,
        "status": event.status,
        "duration_ms": event.duration_ms,
        "outcome": event.outcome.value,
        "ray": event.ray,
    }


def _console_line(worker: str, line: LogLine) -> None:
    level = _LEVELS.get(line.level, logging.INFO)
    _console.log(level, "console", extra={"worker": worker, "text": line.text})


def _daemon_line(line: str) -> None:
    _host.info("inference_output", extra={"text": line})


def _daemon_state(state: DaemonState) -> None:
    level = logging.WARNING if state.kind == "ended" else logging.INFO
    _host.log(
        level, f"inference_{state.kind}", extra={"daemon_pid": state.pid, "detail": state.detail}
    )
