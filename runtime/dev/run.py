"""The dev server's life: start what the worker needs, serve, rebuild on saves, end everything."""

import asyncio
import contextlib
import errno
from dataclasses import dataclass
from pathlib import Path

import belem
from belem.isolates import GuestThrew, LogLine
from belem.runtime.dev.application import Application
from belem.runtime.dev.console import DevConsole
from belem.runtime.dev.inference import Inference
from belem.runtime.dev.session import Session, Step
from belem.runtime.dev.watch import Watcher
from belem.runtime.project import (
    AIBinding,
    Builder,
    DevServer,
    Project,
    load_project,
)
from belem.runtime.server import (
    AUTO,
    Dispatch,
    Listener,
    Outcome,
    PortInUse,
    RequestEvent,
    bind,
    open_composer,
    serving,
)
from belem.sdk import BelemError
from belem.sdk.folders import user_cache_directory

__all__ = ["DevSettings", "dev"]

_DRAIN_SECONDS = 2.0
_OTHER_PORTS = 10


@dataclass(frozen=True, slots=True)
class DevSettings:
    """What the command line asked for; None leaves a choice to the project."""

    path: Path
    environment: str | None = None
    host: str | None = None
    port: int | None = None
    inference: str = AUTO


async def dev(settings: DevSettings, console: DevConsole, stop: asyncio.Event) -> None:
    """Serve the project until `stop` is set; raise BelemError if it cannot start."""
    console.banner(belem.__version__)
    project = await asyncio.to_thread(load_project, settings.path, environment=settings.environment)
    listener = _listen(project.dev, settings, console)
    async with contextlib.AsyncExitStack() as stack:
        inference = Inference(settings.inference, console)
        stack.push_async_callback(inference.aclose)
        composer = await stack.enter_async_context(
            open_composer(
                cache_directory=user_cache_directory() / "isolates",
                kv_file=_state_directory(project) / "kv.sqlite",
                inference_address=inference.address,
                allow_private_fetch=True,
            )
        )
        session = Session(
            settings.path,
            settings.environment,
            project,
            composer,
            Builder(cache_directory=user_cache_directory()),
            lambda line: _log(console, session, line),
        )
        stack.push_async_callback(session.aclose)
        await _serve(session, inference, listener, console, stop)


async def _serve(
    session: Session,
    inference: Inference,
    listener: Listener,
    console: DevConsole,
    stop: asyncio.Event,
) -> None:
    dispatch = Dispatch(
        session.route,
        on_request=lambda event: _request(console, session, event),
        explain=session.explain,
    )
    application = Application(dispatch, session.project.name)
    first = await session.rebuild()
    _introduce(console, session, inference)
    _show(console, application, first, session, changed=None)
    if session.needs_inference:
        inference.start()
    async with serving(application, listener, drain_seconds=_DRAIN_SECONDS):
        console.ready(listener.url)
        watcher = Watcher(session.watched)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_rebuild_on_saves(session, inference, watcher, application, console))
            await stop.wait()
            console.note("stopping")
            watcher.close()
            application.close()


async def _rebuild_on_saves(
    session: Session,
    inference: Inference,
    watcher: Watcher,
    application: Application,
    console: DevConsole,
) -> None:
    async for changed in watcher:
        step = await session.rebuild()
        watcher.watch(session.watched)
        _show(console, application, step, session, changed)
        if session.needs_inference:
            inference.start()


def _show(
    console: DevConsole,
    application: Application,
    step: Step,
    session: Session,
    changed: frozenset[Path] | None,
) -> None:
    application.show(step.problem)
    for warning in step.warnings:
        console.warn(warning)
    if step.problem is not None:
        console.problem(step.problem)
    elif changed is not None:
        names = ", ".join(sorted(_relative(path, session.project.root) for path in changed))
        console.note(f"reloaded in {step.duration_ms:.0f} ms ({names})")


def _listen(configured: DevServer, settings: DevSettings, console: DevConsole) -> Listener:
    host = settings.host or configured.host
    if settings.port is not None:
        return bind(host, settings.port)
    try:
        return bind(host, configured.port)
    except PortInUse as error:
        cause = error.__cause__
        if not isinstance(cause, OSError) or cause.errno != errno.EADDRINUSE:
            raise
        console.warn(f"port {configured.port} is in use; another one is taken")
    for port in range(configured.port + 1, configured.port + _OTHER_PORTS):
        with contextlib.suppress(PortInUse):
            return bind(host, port)
    return bind(host, 0)


def _introduce(console: DevConsole, session: Session, inference: Inference) -> None:
    project = session.project
    for warning in project.warnings:
        console.warn(warning)
    rows = [("worker", f"{project.name} ({_relative(project.main, Path.cwd())})")]
    if project.config_path is not None:
        rows.append(("config", _relative(project.config_path, Path.cwd())))
    state = _relative(_state_directory(project), Path.cwd())
    for binding in project.bindings:
        if isinstance(binding, AIBinding):
            if binding.name in project.inferred and not session.needs_inference:
                continue
            meaning = inference.description
        else:
            meaning = f'KV namespace "{binding.namespace_id}" in {state}'
            if binding.name in project.inferred:
                meaning += ", declared by the handler's Env"
        rows.append((f"env.{binding.name}", meaning))
    rows += [(f"env.{name}", "variable") for name in sorted(project.vars.keys() - project.secrets)]
    rows += [(f"env.{name}", "secret") for name in sorted(project.secrets)]
    console.table(rows)


def _request(console: DevConsole, session: Session, event: RequestEvent) -> None:
    error = event.error
    if isinstance(error, GuestThrew):
        explained = session.explain(error)
        parts = (error.message, explained.stack, explained.excerpt)
        console.log("error", "\n".join(part for part in parts if part))
    elif isinstance(error, BelemError):
        console.log("error", error.message)
    elif error is not None:
        console.log("error", f"{type(error).__name__}: {error}")
    # A client that left may have had its status already; that it left is what matters.
    status = None if event.outcome is Outcome.CANCELED else event.status
    console.request(event.method, event.path, status, event.duration_ms)


def _log(console: DevConsole, session: Session, line: LogLine) -> None:
    text = session.map_stack(line.text) if "\n" in line.text else line.text
    console.log(line.level, text)


def _state_directory(project: Project) -> Path:
    return project.root / ".belem" / "state"


def _relative(path: Path, base: Path) -> str:
    return str(path.relative_to(base)) if path.is_relative_to(base) else str(path)
