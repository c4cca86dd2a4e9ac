"""What `belem serve` may be told, checked before anything is opened."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Literal

from belem.sdk import UserError

__all__ = [
    "AUTO",
    "MAX_PROCESSES",
    "MAX_TENANT_PROCESSES",
    "BadSettings",
    "Isolation",
    "ServeSettings",
    "Started",
]

AUTO: Final = "auto"
MAX_PROCESSES: Final = 256
MAX_TENANT_PROCESSES: Final = 4096

Isolation = Literal["shared", "process"]


class BadSettings(UserError):
    """Settings that are out of range, or that contradict each other."""

    code: ClassVar[str] = "server/bad-settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What `belem serve` may be told. `inference` is "auto" or a gRPC target.

    `isolation` "process" gives every worker a host process of its own; `processes` shares the
    requests of all workers out to so many host processes.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = 8787
    control_host: str = "127.0.0.1"
    control_port: int = 8788
    token_file: Path | None = None
    inference: str = AUTO
    allow_private_fetch: bool = False
    access_log: bool = False
    log_format: Literal["text", "json"] = "text"
    processes: int = 1
    isolation: Isolation = "shared"
    max_processes: int = 64

    def __post_init__(self) -> None:
        if not 1 <= self.processes <= MAX_PROCESSES:
            raise BadSettings(f"--processes is {self.processes}; it must be 1 to {MAX_PROCESSES}.")
        if not 1 <= self.max_processes <= MAX_TENANT_PROCESSES:
            raise BadSettings(
                f"--max-processes is {self.max_processes}; it must be 1 to {MAX_TENANT_PROCESSES}."
            )
        if self.isolation == "process" and self.processes != 1:
            raise BadSettings(
                f"--processes {self.processes} does not go with --isolation process, which starts "
                "host processes as workers need them."
            )


@dataclass(frozen=True, slots=True)
class Started:
    """What is said once requests are accepted. `workers` says of each whether it runs."""

    url: str
    port: int
    control_url: str
    token_file: Path
    workers: Mapping[str, bool]
