"""Where a command finds the inference daemon."""

import re
from typing import Final

import click

from belem.runtime.server import AUTO

__all__ = ["inference_address"]

_ADDRESS: Final = re.compile(r"unix:.+|dns:.+|(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})")
_MAX_PORT: Final = 65535


def inference_address(_ctx: click.Context, _option: click.Parameter, text: str) -> str:
    """Check an option's value before anything is started."""
    match = _ADDRESS.fullmatch(text)
    if text != AUTO and (match is None or int(match[2] or 0) > _MAX_PORT):
        raise click.BadParameter(f"'{text}' is no address; give unix:PATH, HOST:PORT or auto.")
    return text
