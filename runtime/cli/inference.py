"""`belem inference`: the daemon behind env.AI."""

import os
import sys

import click

__all__ = ["inference"]


@click.group()
def inference() -> None:
    """Run the inference daemon."""


@inference.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(arguments: tuple[str, ...]) -> None:
    """Run the inference daemon in this process. Its options are its own: see --help."""
    # Replaces this process, so that signals and the exit status are the daemon's.
    os.execv(sys.executable, [sys.executable, "-m", "belem.runtime.inference", *arguments])
