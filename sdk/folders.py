"""Where Belem keeps what can be made or pulled again."""

import os
from pathlib import Path

__all__ = ["user_cache_directory"]


def user_cache_directory() -> Path:
    """Return `belem` in `$XDG_CACHE_HOME`, or in `~/.cache`.

    A relative path in the variable is ignored, as the XDG specification says.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "belem"
