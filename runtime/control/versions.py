"""Versions: what was uploaded, unchangeable, and the Protocol of the store that keeps them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from belem.runtime.control.errors import BadWorkerName
from belem.sdk import Json

__all__ = [
    "Binding",
    "BindingType",
    "Isolation",
    "Upload",
    "Version",
    "VersionStore",
    "WorkerSummary",
    "check_worker_name",
]

BindingType = Literal["ai", "kv_namespace"]
Isolation = Literal["shared", "request"]

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Binding:
    """One name in `env` that is a capability. A KV namespace without an id is the worker's own."""

    name: str
    type: BindingType
    namespace_id: str | None = None


@dataclass(frozen=True, slots=True)
class Upload:
    """What a deploy sends: everything that a worker is. Modules are JavaScript, by name."""

    worker: str
    main_module: str
    modules: Mapping[str, str]
    bindings: tuple[Binding, ...] = ()
    vars: Mapping[str, Json] = field(default_factory=dict[str, Json])
    compatibility_date: str = ""
    compatibility_flags: tuple[str, ...] = ()
    cpu_ms: int | None = None
    subrequests: int | None = None
    isolation: Isolation = "shared"


@dataclass(frozen=True, slots=True)
class Version:
    """An upload that was kept. `number` counts a worker's versions from 1."""

    id: str
    number: int
    created_ms: int
    upload: Upload


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """One line of the list of workers."""

    name: str
    version_id: str
    number: int
    created_ms: int
    modified_ms: int
    bindings: tuple[Binding, ...]


class VersionStore(Protocol):
    """Keep versions, and which one of each worker is active.

    A method that returns has made its change durable. A version is written whole before it can be
    activated, so a crash at any moment leaves every worker on the old version or on the new one.
    """

    async def deploy(self, upload: Upload, /) -> Version:
        """Keep the upload as the worker's next version and activate it, in one transaction."""
        ...

    async def active(self, worker: str, /) -> Version | None:
        """Return the worker's active version with its modules, or None."""
        ...

    async def list(self) -> Sequence[WorkerSummary]:
        """Return every worker, by name."""
        ...

    async def delete(self, worker: str, /) -> bool:
        """Forget the worker and all its versions; return whether it was there."""
        ...

    async def aclose(self) -> None: ...


def check_worker_name(name: str) -> str:
    """Return the name, which becomes a host name's label, or raise `BadWorkerName`."""
    if _NAME.fullmatch(name) is None:
        raise BadWorkerName(
            f"The worker name {name[:80]!r} is not valid: use lower-case letters, digits and "
            "dashes, at most "
            f"63 characters, with no dash at either end."
        )
    return name
