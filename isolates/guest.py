"""What is run: a guest (engine and boot code) and a program on top of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from belem.sdk.ops import Json

__all__ = ["Guest", "Program", "Script"]


@dataclass(frozen=True, slots=True)
class Script:
    """A named piece of source that a guest runs or can import."""

    name: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """An engine compiled to wasm, and the code that turns it into a language runtime.

    `scripts` run in order when the base image is made; `modules` are what any worker may import.
    """

    name: str
    wasm: Path
    scripts: tuple[Script, ...] = ()
    modules: tuple[Script, ...] = ()
    stack_bytes: int = 768 << 10
    gc_threshold_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A worker's modules and the configuration its guest gets before they are evaluated."""

    main: str
    modules: Mapping[str, str]
    configuration: Mapping[str, Json] = field(default_factory=dict[str, Json])
