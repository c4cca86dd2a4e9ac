"""Turn TypeScript and JSX into JavaScript with OXC, a parser written in Rust and compiled to wasm.

The wasm is the one in the package quickjs-rs. Its Python API compiles it again in every process
(0.65 s); run from here it is compiled once for each user and mapped from their cache after that
(0.5 ms). It has no files, no network and a bounded memory: what it is given is somebody's code, and
it runs in a fresh instance each time.
"""

import hashlib
import os
import platform
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Final

import wasmtime

__all__ = ["Language", "ParseFailure", "Transformer"]

_OK: Final = 0
_UNCHANGED: Final = 1
_PARSE_ERROR: Final = 3
_MEMORY_BYTES: Final = 1 << 30


class ParseFailure(Exception):
    """OXC refused a source: its reasons, first one first. It tells no positions."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class Language:
    """How OXC reads a source: its flags, and whether its output is wanted or only its judgement."""

    flags: int
    transforms: bool


# Flags of the wasm: 1 TypeScript, 2 TypeScript with JSX, 256 strip, 512 turn top-level const into
# var. The last is the only one with which it parses plain JavaScript; the output of that is thrown
# away.
TYPESCRIPT: Final = Language(flags=1 | 256, transforms=True)
JSX: Final = Language(flags=2 | 256, transforms=True)
JAVASCRIPT: Final = Language(flags=512, transforms=False)


class Transformer:
    """Runs OXC. Safe to use from several threads; makes nothing until its first use."""

    def __init__(self, cache_directory: Path | None) -> None:
        self._cache_directory = cache_directory
        self._lock = threading.Lock()
        self._compiled: tuple[wasmtime.Engine, wasmtime.Module, wasmtime.Linker] | None = None

    def __call__(self, name: str, source: str, language: Language) -> str:
        """Return the JavaScript of a source; raise ParseFailure if it has none."""
        try:
            text = source.encode()
        except UnicodeEncodeError:
            raise ParseFailure(("The text has half a surrogate pair in it",)) from None
        instance = _Instance(*self._ready())
        try:
            output = instance.transform(name.encode(errors="replace"), text, language.flags)
        except (wasmtime.Trap, wasmtime.WasmtimeError):
            # Out of stack or memory: brackets nested by the thousand.
            raise ParseFailure(("The code is nested too deeply to parse",)) from None
        return output if language.transforms else source

    def _ready(self) -> tuple[wasmtime.Engine, wasmtime.Module, wasmtime.Linker]:
        with self._lock:
            if self._compiled is None:
                engine = wasmtime.Engine()
                linker = wasmtime.Linker(engine)
                linker.define_wasi()
                self._compiled = engine, _module(engine, self._cache_directory), linker
            return self._compiled


class _Instance:
    """One run of the wasm: memory in, memory out."""

    def __init__(
        self, engine: wasmtime.Engine, module: wasmtime.Module, linker: wasmtime.Linker
    ) -> None:
        self._store = wasmtime.Store(engine)
        self._store.set_limits(memory_size=_MEMORY_BYTES)
        self._store.set_wasi(wasmtime.WasiConfig())
        self._exports = linker.instantiate(self._store, module).exports(self._store)

    def transform(self, name: bytes, source: bytes, flags: int) -> str:
        arguments = (self._write(name), len(name), self._write(source), len(source), flags)
        status = self._call("qjst_transform", *arguments)
        if status == _UNCHANGED:
            return source.decode()
        if status == _OK:
            return self._read("qjst_result").decode()
        error = self._read("qjst_error").decode(errors="replace")
        if status == _PARSE_ERROR:
            # "source parse error in <name>: <reason>; <reason>"
            error = error.partition(name.decode() + ": ")[2] or error
        raise ParseFailure(tuple(error.split("; ")) if error else ("The code cannot be parsed",))

    def _call(self, export: str, *arguments: int) -> int:
        function = self._exports[export]
        assert isinstance(function, wasmtime.Func)
        return int(function(self._store, *arguments) or 0)

    def _write(self, data: bytes) -> int:
        address = self._call("qjst_alloc", len(data))
        self._memory().write(self._store, data, address)
        return address

    def _read(self, what: str) -> bytes:
        size, address = self._call(what + "_len"), self._call(what + "_ptr")
        return bytes(self._memory().read(self._store, address, address + size))

    def _memory(self) -> wasmtime.Memory:
        memory = self._exports["memory"]
        assert isinstance(memory, wasmtime.Memory)
        return memory


def _module(engine: wasmtime.Engine, cache_directory: Path | None) -> wasmtime.Module:
    wasm = (files("quickjs_rs") / "_transform.wasm").read_bytes()
    if cache_directory is None:
        return wasmtime.Module(engine, wasm)
    key = f"{hashlib.sha256(wasm).hexdigest()[:16]}-{version('wasmtime')}-{platform.machine()}"
    path = cache_directory / f"oxc-{key}.cwasm"
    if _is_ours(path):
        # A file of another CPU or a broken disk is refused by wasmtime, and made again.
        with suppress(wasmtime.WasmtimeError):
            return wasmtime.Module.deserialize_file(engine, str(path))
    module = wasmtime.Module(engine, wasm)
    # The cache only saves time: a full disk or a home that cannot be written must not stop a build.
    with suppress(OSError):
        _write_whole(path, bytes(module.serialize()))
    return module


def _is_ours(path: Path) -> bool:
    """Say whether only this user can have written the file: what is in it runs as native code."""
    try:
        states = (path.lstat(), path.parent.stat())
    except OSError:
        return False
    return all(state.st_uid == os.geteuid() and not state.st_mode & 0o022 for state in states)


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
