"""`belem` itself: commands are imported when asked for, errors become one line and a status."""

import importlib
import os
import sys
from typing import Final

import click

from belem.sdk.errors import BelemError

__all__ = ["belem", "main"]

# Name to help line: `belem --help` and `belem --version` import none of the commands.
_COMMANDS: Final = {
    "init": "Make a new worker from a starter.",
    "dev": "Run a worker on this machine, and reload it on every save.",
    "serve": "Run a host that workers are deployed to.",
    "deploy": "Deploy a worker to a host.",
    "list": "List the workers of a host.",
    "tail": "Watch the invocations of a worker on a host.",
    "delete": "Delete a worker from a host.",
    "ai": "Manage the models behind env.AI.",
    "inference": "Run the inference daemon.",
}
# What a command needs beyond the base installation, by the module whose import fails.
_OPTIONAL: Final = {
    "tensorflow": "cpu",
    "gguf": "models",
    "tokenizers": "models",
    "jinja2": "models",
}


class _Commands(click.Group):
    """Import a command when it is asked for: a start must not pay for what it does not use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        try:
            module = importlib.import_module(f"belem.runtime.cli.{cmd_name}")
        except ModuleNotFoundError as error:
            raise click.ClickException(_missing(cmd_name, error)) from error
        command: object = getattr(module, cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"belem.runtime.cli.{cmd_name} has no command {cmd_name}.")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="belem", prog_name="belem", message="%(prog)s %(version)s")
def belem() -> None:
    """Run workers written for Cloudflare Workers on your own machines."""


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    # What is forked is replaced by another program at once, so gRPC need not prepare for it; it
    # would write into the terminal whenever it could not. Read when gRPC is first imported.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        status = belem(standalone_mode=False)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BelemError as error:
        click.echo(click.style("Error: ", fg="red", bold=True) + error.message, err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader (`head`, a pager) has what it wanted; Python's exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)


def _missing(command: str, error: ModuleNotFoundError) -> str:
    module = (error.name or "").partition(".")[0]
    extra = _OPTIONAL.get(module)
    if extra is None:
        return f"`belem {command}` is not part of this installation: {error}."
    return f"`belem {command}` needs {module}. Install it with: pip install 'belem[{extra}]'"
