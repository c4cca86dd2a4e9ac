"""The options that say which host a command talks to, and with which token."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from belem.runtime.control.client import ControlClient
from belem.runtime.control.tokens import read_token
from belem.sdk import UserError

__all__ = ["DEFAULT_CONTROL_URL", "connect", "host_options"]

Command = TypeVar("Command", bound=Callable[..., Any])  # Any: click decorates every signature

DEFAULT_CONTROL_URL: Final = "http://127.0.0.1:8788"


def host_options(command: Command) -> Command:
    """Add --host, --token and --token-file."""
    for option in (
        click.option(
            "--token-file",
            type=click.Path(path_type=Path, dir_okay=False),
            envvar="BELEM_TOKEN_FILE",
            help="File that holds the token; `belem serve` prints its path.",
        ),
        click.option(
            "--token",
            envvar="BELEM_TOKEN",
            help="The host's token. BELEM_TOKEN keeps it out of the process list.",
        ),
        click.option(
            "--host",
            "url",
            envvar="BELEM_HOST",
            default=DEFAULT_CONTROL_URL,
            show_default=True,
            help="The host's control URL (BELEM_HOST).",
        ),
    ):
        command = option(command)
    return command


def connect(url: str, token: str | None, token_file: Path | None) -> ControlClient:
    """Return a client of the host that the options name."""
    if token is None and token_file is not None:
        try:
            token = read_token(token_file)
        except FileNotFoundError as error:
            raise UserError(
                f"There is no token file {token_file}. `belem serve` prints where its token is."
            ) from error
    if not token:
        raise UserError(
            "No token for the host. Give --token-file PATH (`belem serve` prints the path), or "
            "set BELEM_TOKEN."
        )
    if "://" not in url:
        url = f"http://{url}"
    return ControlClient(url, token)
