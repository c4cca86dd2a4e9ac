"""What a project may be told, as values."""

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias

from belem.sdk import Json

__all__ = [
    "VARIABLES_LIMIT",
    "VARIABLE_LIMIT_BYTES",
    "AIBinding",
    "Binding",
    "DevServer",
    "Isolation",
    "KVBinding",
    "Limits",
    "variable_bytes",
]

VARIABLES_LIMIT = 128
"""Variables and secrets of a worker together, as on Workers; and how large each may be."""
VARIABLE_LIMIT_BYTES = 5 * 1024

Isolation: TypeAlias = Literal["shared", "request"]


@dataclass(frozen=True, slots=True)
class KVBinding:
    """`env.<name>` is the key-value namespace with this id."""

    name: str
    namespace_id: str


@dataclass(frozen=True, slots=True)
class AIBinding:
    """`env.<name>` is the AI binding."""

    name: str


Binding: TypeAlias = KVBinding | AIBinding


@dataclass(frozen=True, slots=True)
class DevServer:
    """Where the dev server listens. Port 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = 8787


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one invocation; None leaves it to the server."""

    cpu_ms: int | None = None
    subrequests: int | None = None


def variable_bytes(value: Json) -> int:
    """Return the size of a variable: of its text, or of what is no text as JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    return len(text.encode("utf-8", "replace"))
