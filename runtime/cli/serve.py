"""`belem serve`: run a host that workers are deployed to."""

from importlib.metadata import version
from pathlib import Path
from typing import Literal

import click

from belem.runtime.cli.addresses import inference_address
from belem.runtime.cli.stopping import run_until_stopped
from belem.runtime.server import (
    AUTO,
    MAX_PROCESSES,
    MAX_TENANT_PROCESSES,
    Isolation,
    ServeSettings,
    Started,
    set_up_logging,
)
from belem.runtime.server import serve as serve_host

__all__ = ["serve"]


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Directory for versions, KV and the token; made if it is not there.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address for requests.")
@click.option("--port", default=8787, show_default=True, help="Port for requests; 0 is any.")
@click.option(
    "--control-host", default="127.0.0.1", show_default=True, help="Address for deployments."
)
@click.option("--control-port", default=8788, show_default=True, help="Port for deployments.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the token that deployments need; made if it is not there. [default: DATA/token]",
)
@click.option(
    "--inference",
    callback=inference_address,
    default=AUTO,
    show_default=True,
    metavar="ADDRESS|auto",
    help="The inference daemon (unix:PATH or HOST:PORT); auto starts one when a worker needs it.",
)
@click.option(
    "--allow-private-fetch",
    is_flag=True,
    help="Let workers fetch from private and loopback addresses.",
)
@click.option(
    "--processes",
    default=1,
    show_default=True,
    type=click.IntRange(1, MAX_PROCESSES),
    help="Host processes that share the requests; one for each core is a good number.",
)
@click.option(
    "--isolation",
    type=click.Choice(["shared", "process"]),
    default="shared",
    show_default=True,
    help="process: every worker in a host process of its own, for tenants without trust.",
)
@click.option(
    "--max-processes",
    default=64,
    show_default=True,
    type=click.IntRange(1, MAX_TENANT_PROCESSES),
    help="With --isolation process: host processes at a time; idle ones make room.",
)
@click.option("--access-log", is_flag=True, help="Log every request, and not only failed ones.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Shape of the log lines on stderr.",
)
def serve(
    *,
    data: Path,
    host: str,
    port: int,
    control_host: str,
    control_port: int,
    token_file: Path | None,
    inference: str,
    allow_private_fetch: bool,
    access_log: bool,
    log_format: Literal["text", "json"],
    processes: int,
    isolation: Isolation,
    max_processes: int,
) -> None:
    """Run a host for workers. SIGTERM and Ctrl-C drain it; a second one ends it."""
    set_up_logging(log_format)
    settings = ServeSettings(
        data=data,
        host=host,
        port=port,
        control_host=control_host,
        control_port=control_port,
        token_file=token_file,
        inference=inference,
        allow_private_fetch=allow_private_fetch,
        access_log=access_log,
        log_format=log_format,
        processes=processes,
        isolation=isolation,
        max_processes=max_processes,
    )
    run_until_stopped(lambda stop: serve_host(settings, stop=stop, announce=_announce))


def _announce(started: Started) -> None:
    running = [name for name, runs in started.workers.items() if runs]
    broken = [name for name, runs in started.workers.items() if not runs]
    lines = [
        ("workers", f"http://NAME.localhost:{started.port}/ and {started.url}/NAME/"),
        ("control API", started.control_url),
        ("token file", str(started.token_file)),
        ("live", ", ".join(running) or "none yet"),
        (
            "deploy",
            f"belem deploy PATH --host {started.control_url} --token-file {started.token_file}",
        ),
    ]
    if broken:
        lines.insert(4, ("failed", f"{', '.join(broken)} (the log says why)"))
    click.echo(f"Belem {version('belem')} is ready")
    for name, value in lines:
        click.echo(f"  {name:<12} {value}")
