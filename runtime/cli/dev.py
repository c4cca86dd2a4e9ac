"""`belem dev`: run a worker on this machine, and reload it on every save."""

from pathlib import Path

import click

from belem.runtime.cli.addresses import inference_address
from belem.runtime.cli.stopping import run_until_stopped
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
    callback=inference_address,
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
    run_until_stopped(lambda stop: run_dev(settings, DevConsole(), stop))
