"""`belem init`: make a new worker from a starter."""

import shlex
from pathlib import Path
from typing import Literal

import click

from belem.runtime.project import create_starter, worker_name_from

__all__ = ["init"]


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option(
    "--lang",
    type=click.Choice(["ts", "js"]),
    default="ts",
    show_default=True,
    help="TypeScript or JavaScript.",
)
@click.option("--name", help="The worker's name. [default: the folder's]")
def init(directory: Path, *, lang: Literal["ts", "js"], name: str | None) -> None:
    """Write a new worker into DIRECTORY, which must be empty or not there yet."""
    name = name or worker_name_from(directory.resolve().name)
    for path in create_starter(directory, name, lang):
        click.echo(f"  {path.relative_to(directory)}")
    command = "belem dev" if directory == Path() else f"belem dev {shlex.quote(str(directory))}"
    click.echo(f"Wrote the worker {name}. Run it with:\n  {command}")
