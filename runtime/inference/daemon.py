"""The daemon's life: choose the device, listen, load, answer, drain. Composition is here."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.bindings.ai.v1 import inference_pb2_grpc as pb_grpc
from belem.runtime.inference.device import Device, DeviceThread
from belem.runtime.inference.listening import Address, bind
from belem.runtime.inference.servable import ServableManager, load_text_model
from belem.runtime.inference.service import InferenceService, ModelNames
from belem.runtime.inference.text.text_model import TextLimits
from belem.sdk.errors import BelemError

__all__ = ["DaemonOptions", "serve"]

_SERVICE: Final = pb.DESCRIPTOR.services_by_name["Inference"].full_name
_MAX_RECEIVE_BYTES: Final = 16 << 20  # Workers AI's largest request is 10 MB
_MAX_SEND_BYTES: Final = 4 << 20
_SPARE_CALLS: Final = 32  # health checks and lists, beside the generations
_PARENT_POLL_SECONDS: Final = 1.0
_SERVER_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MAX_RECEIVE_BYTES),
    ("grpc.max_send_message_length", _MAX_SEND_BYTES),
    # Two daemons at one port would share the connections between them: refuse instead.
    ("grpc.so_reuseport", 0),
    # Clients look for dead peers every 30 seconds, with or without calls.
    ("grpc.http2.min_ping_interval_without_data_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
)


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """What the command line says."""

    address: Address
    limits: TextLimits
    load_at_start: bool = True
    parent_pid: int | None = None
    drain_seconds: float = 4.0


async def serve(
    options: DaemonOptions, device: Device, names: ModelNames, *, say: Callable[[str], None]
) -> None:
    """Serve until SIGTERM, SIGINT or the parent's death; then drain and end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    thread = DeviceThread(device)
    load = partial(load_text_model, device=device, thread=thread, limits=options.limits)
    try:
        async with ServableManager(load, say=say) as manager:
            service = InferenceService(names, manager, device, options.limits.context_tokens)
            server, status = _server(service, options.limits)
            address = bind(server, options.address)
            try:
                await server.start()
                await status.set(_SERVICE, health_pb2.HealthCheckResponse.SERVING)
                _say_where(address, device, say)
                if options.load_at_start:
                    _load_installed(names, manager)
                await _until_stopped(stop, options.parent_pid)
                await status.enter_graceful_shutdown()
            finally:
                await server.stop(options.drain_seconds)
                service.close()
                if address.path is not None:
                    address.path.unlink(missing_ok=True)
    finally:
        thread.close()


def _server(
    service: InferenceService, limits: TextLimits
) -> tuple[grpc.aio.Server, health.aio.HealthServicer]:
    server = grpc.aio.server(
        options=_SERVER_OPTIONS,
        maximum_concurrent_rpcs=limits.slots + limits.max_waiting + _SPARE_CALLS,
    )
    pb_grpc.add_InferenceServicer_to_server(service, server)  # type: ignore[no-untyped-call]  # generated
    status = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    names = (_SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    return server, status


def _say_where(address: Address, device: Device, say: Callable[[str], None]) -> None:
    if not address.is_private:
        say("anybody who reaches this address may use the models: calls are not authenticated")
    say(f"ready on {address.target} with {device.name} ({device.description}), pid {os.getpid()}")


def _load_installed(names: ModelNames, manager: ServableManager) -> None:
    for entry in names.entries():
        if entry.file is not None and entry.task == "text-generation":
            with contextlib.suppress(BelemError):  # it is told when it happens, and to who asks
                manager.start(entry)


async def _until_stopped(stop: asyncio.Event, parent_pid: int | None) -> None:
    if parent_pid is None:
        await stop.wait()
        return
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(_set_on_death(parent_pid, stop))
        await stop.wait()
        watching.cancel()


async def _set_on_death(pid: int, stop: asyncio.Event) -> None:
    """Set the event when a process ends, however it ends."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        stop.set()
        return
    except OSError:  # a kernel without handles on processes
        while _is_alive(pid):  # noqa: ASYNC110  # nothing else tells
            await asyncio.sleep(_PARENT_POLL_SECONDS)
        stop.set()
        return
    loop = asyncio.get_running_loop()
    try:
        loop.add_reader(handle, stop.set)
        await stop.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
