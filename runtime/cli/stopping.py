"""Run a server until Ctrl-C or SIGTERM: the first asks it to finish, the second does not."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

import click
import uvloop

__all__ = ["run_until_stopped"]


def run_until_stopped(serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run `serve` in a fresh event loop; its argument is set when it should end."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_until_stopped(serve))


async def _until_stopped(serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def stop_or_leave() -> None:
        if stop.is_set():
            task.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop_or_leave)
    try:
        await serve(stop)
    except asyncio.CancelledError:
        click.echo("Stopped before everything was finished.", err=True)
