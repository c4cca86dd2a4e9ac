"""`belem dev`: run a worker on this machine, and reload it on every save."""

import asyncio
import signal
from pathlib import Path

import click
import uvloop

from belem.runtime.dev import DevConsole, DevSettings
from belem.runtime.dev import dev as run_dev
from belem.runtime.server import AUTO

__all__ = ["dev"]


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@click.option("--env", "environment", metavar="NAME", help="The config's environment to run.")
@click.option(
    "--host", metavar="ADDRESS", help="Address to listen on. [default: dev.ip, 127.0.0.1]"
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 is any. [default: 8787]")
@click.option(
    "--inference",
    default=AUTO,
    show_default=True,
    metavar="ADDRESS|auto",
    help="The inference daemon (unix:PATH or HOST:PORT); auto starts one when the worker needs it.",
)
def dev(
    *, path: Path, environment: str | None, host: str | None, port: int | None, inference: str
) -> None:
    """Run the worker at PATH: a handler file, a folder, or a wrangler config.

    Ctrl-C stops it and all that it started; a second Ctrl-C does not wait for open requests.
    """
    settings = DevSettings(path, environment, host, port, inference)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_until_stopped(settings))


async def _until_stopped(settings: DevSettings) -> None:
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
        await run_dev(settings, DevConsole(), stop)
    except asyncio.CancelledError:
        click.echo("Stopped before everything was finished.", err=True)
