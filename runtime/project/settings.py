"""What a project may be told, as values."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["AIBinding", "Binding", "DevServer", "Isolation", "KVBinding", "Limits"]

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
