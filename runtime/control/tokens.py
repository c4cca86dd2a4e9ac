"""The control API's bearer token: made at the first start, in a file that only its owner reads."""

import os
import secrets
from pathlib import Path
from typing import ClassVar

from belem.sdk import UserError

__all__ = ["BadTokenFile", "ensure_token", "read_token"]


class BadTokenFile(UserError):
    """The token file cannot be used."""

    code: ClassVar[str] = "control/bad-token-file"


def ensure_token(path: Path) -> str:
    """Return the token in `path`; make the file, with mode 0600, if it is not there."""
    try:
        return read_token(path)
    except FileNotFoundError:
        pass
    token = secrets.token_urlsafe(32)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and renamed: a crash never leaves an empty token file.
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.rename(fresh, path)
    return token


def read_token(path: Path) -> str:
    """Return the token in `path`."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (UnicodeDecodeError, PermissionError, IsADirectoryError) as error:
        raise BadTokenFile(f"The token file {path} cannot be read: {error}") from error
    if len(token) < 16:
        raise BadTokenFile(
            f"The token in {path} has {len(token)} characters; it needs at least 16. "
            f"Delete the file and the host makes a new one."
        )
    return token
