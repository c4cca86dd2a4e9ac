"""Read the variables of development: `.dev.vars`, or `.env` where there is none."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

from belem.runtime.project.checks import Checker, binding_name
from belem.runtime.project.errors import ConfigError

__all__ = ["Variables", "read_variables"]

_FILE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Variables:
    """The secrets found, and the files whose change would change them, there or not."""

    values: Mapping[str, str]
    files: tuple[Path, ...]
    read: tuple[Path, ...]


def read_variables(root: Path, environment: str | None) -> Variables:
    """Read as wrangler does: one `.dev.vars` file, else the `.env` files together."""
    dev_vars, dotenv = [root / ".dev.vars"], [root / ".env.local", root / ".env"]
    if environment is not None:
        dev_vars.insert(0, root / f".dev.vars.{environment}")
        dotenv.insert(0, root / f".env.{environment}.local")
        dotenv.insert(2, root / f".env.{environment}")
    files = (*dev_vars, *dotenv)
    for path in dev_vars:
        # The environment's file stands for the plain one; they are not joined.
        if path.is_file():
            return Variables(_read(path, interpolate=False), files, (path,))
    read = tuple(path for path in dotenv if path.is_file())
    values: dict[str, str] = {}
    for path in reversed(read):
        values.update(_read(path, interpolate=True))
    return Variables(values, files, read)


def _read(path: Path, *, interpolate: bool) -> dict[str, str]:
    try:
        size_bytes = path.stat().st_size
        if size_bytes > _FILE_BYTES:
            raise ConfigError(f"{path} is {size_bytes} bytes; the limit is {_FILE_BYTES} bytes.")
        source = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    checker = Checker(path)
    for binding in parse_stream(io.StringIO(source)):
        # The text of a line is not shown: it may hold a secret.
        line = binding.original.line
        if binding.error or (binding.key is not None and binding.value is None):
            raise ConfigError(f"{path}:{line}: the line is not of the form NAME=value.")
        if binding.key is not None:
            binding_name(checker, f"the name in line {line}", binding.key)
    values = dotenv_values(stream=io.StringIO(source), interpolate=interpolate)
    return {name: value for name, value in values.items() if value is not None}
