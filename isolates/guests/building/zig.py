"""The C and C++ compiler: clang as the ziglang wheel ships it, which brings a libc for wasm."""

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from belem.isolates.guests.building.errors import BuildFailed

__all__ = ["ZIG_VERSION", "Unit", "Zig"]

ZIG_VERSION: Final = "0.17.1"  # other versions make other bytes: change it with the tests run anew
_TARGET: Final = ("-target", "wasm32-wasi")
_TIMEOUT_SECONDS: Final = 600
_SHOWN_LINES: Final = 40


@dataclass(frozen=True, slots=True)
class Unit:
    """A file to compile, and the flags for it alone. C++ if its name ends so."""

    path: str
    flags: tuple[str, ...] = ()

    @property
    def object_name(self) -> str:
        """Return the name of the object file."""
        return f"{Path(self.path).stem}.o"

    @property
    def compiler(self) -> str:
        """Return the sub-command of zig for this file."""
        return "c++" if self.path.endswith((".cpp", ".cc")) else "cc"


class Zig:
    """Runs the compiler in one folder. Paths are relative to it: its name is not in the output."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            version = importlib.metadata.version("ziglang")
        except importlib.metadata.PackageNotFoundError:
            version = "none"
        if version != ZIG_VERSION:
            raise BuildFailed(
                f"Building a guest needs ziglang {ZIG_VERSION}; installed is {version}. "
                f"Run `{sys.executable} -m pip install ziglang=={ZIG_VERSION}`, then build again."
            )

    def compile(self, units: Sequence[Unit], flags: Sequence[str]) -> None:
        """Compile every unit to its object file, as many at a time as there are processors."""
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            futures = [
                pool.submit(
                    self._run,
                    unit.compiler,
                    [*_TARGET, *flags, *unit.flags, "-c", unit.path, "-o", unit.object_name],
                )
                for unit in units
            ]
            for future in futures:
                future.result()

    def link(self, units: Sequence[Unit], flags: Sequence[str], output: str) -> Path:
        """Link the units' object files, in their order, to a reactor module."""
        objects = [unit.object_name for unit in units]
        self._run("c++", [*_TARGET, "-mexec-model=reactor", *objects, "-o", output, *flags])
        return self._folder / output

    def _run(self, compiler: str, arguments: Sequence[str]) -> None:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "ziglang", compiler, *arguments],
                cwd=self._folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=_TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise BuildFailed(
                f"The compiler took more than {_TIMEOUT_SECONDS} seconds for {arguments[-1]}. "
                "Build again when the machine has less to do."
            ) from None
        if done.returncode != 0:
            output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_SHOWN_LINES:])
            raise BuildFailed(f"The compiler failed (status {done.returncode}):\n{output}")
