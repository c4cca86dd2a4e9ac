"""`belem delete`: take a worker off a host."""

import sys
from pathlib import Path

import click

from belem.runtime.cli.hosts import connect, host_options

__all__ = ["delete"]


@click.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@host_options
def delete(name: str, *, yes: bool, url: str, token: str | None, token_file: Path | None) -> None:
    """Delete the worker NAME and all its versions from a host. What it kept in KV stays."""
    if not yes and sys.stdin.isatty():
        click.confirm(f"Delete {name} from {url}?", abort=True)
    with connect(url, token, token_file) as client:
        client.delete(name)
    click.echo(f"Deleted {name}.")
