"""How an image is made: run a guest, then a worker's top level, then keep the memory."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from belem.isolates.calls import SMALLEST_BYTES, Inbox, OverCpu, call, read_outbox, reserve
from belem.isolates.errors import GuestInvalid, LoadError, MemoryLimitExceeded
from belem.isolates.event import LogLine
from belem.isolates.guest import Guest, Program, Script
from belem.isolates.limits import Limits
from belem.isolates.patch import NO_PATCH, Patch, apply, difference
from belem.isolates.records import ProtocolBreach, json_bytes, pack, parse, read_object
from belem.isolates.snapshot import image_module
from belem.isolates.wasm import Engine, Instance, Module, Trapped
from belem.isolates.wasm.instance import Function
from belem.sdk.abi import ToGuest, ToHost, Type
from belem.sdk.ops import Json

__all__ = ["Image", "base_image", "guest_key", "program_key", "whole_memory", "worker_image"]

_RUN_SCRIPT, _ADD_MODULE, _EVALUATE_MAIN = 0, 1, 2  # flags of belem_load
_I32, _I64 = 0, 1
NEARLY_FULL_BYTES: Final = 1 << 20  # a trap this close to the limit is for want of memory
_BOOT_CPU_SECONDS: Final = 60.0
_MAX_LOGS: Final = 1_000
# Writing more than this at each spawn would hold up the loop longer than mapping a file does.
_PATCH_LIMIT_BYTES: Final = 512 << 10


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, kw_only=True)
class Image:
    """A worker ready to spawn: the engine's code, its memory, and what it logged.

    The memory is a module that is mapped, and a patch that is written over it.
    """

    key: str
    code: Module
    memory: Module
    memory_bytes: int
    inbox_address: int
    inbox_capacity: int
    logs: tuple[LogLine, ...] = ()
    patch: Patch = NO_PATCH
    base: str = ""  # the key of the image whose memory it patches

    def facts(self) -> Mapping[str, Json]:
        """Return what has to be kept beside the compiled memory."""
        return {
            "memory_bytes": self.memory_bytes,
            "inbox_address": self.inbox_address,
            "inbox_capacity": self.inbox_capacity,
            "logs": [[line.level, line.text] for line in self.logs],
        }

    @classmethod
    def from_facts(
        cls,
        key: str,
        code: Module,
        memory: Module,
        facts: Mapping[str, Json],
        patch: Patch = NO_PATCH,
        base: str = "",
    ) -> "Image":
        """Undo `facts`."""
        logs = cast(Sequence[Sequence[str]], facts["logs"])
        return cls(
            key=key,
            code=code,
            memory=memory,
            memory_bytes=cast(int, facts["memory_bytes"]),
            inbox_address=cast(int, facts["inbox_address"]),
            inbox_capacity=cast(int, facts["inbox_capacity"]),
            logs=tuple(LogLine(0, level, text) for level, text in logs),
            patch=patch,
            base=base,
        )


def guest_key(engine: Engine, guest: Guest, wasm: bytes) -> str:
    """Return what a guest's base image depends on, as a digest."""
    digest = hashlib.sha256(engine.identity.encode() + wasm)
    parts = [
        [guest.stack_bytes, guest.gc_threshold_bytes],
        [[script.name, script.source] for script in guest.scripts],
        [[module.name, module.source] for module in guest.modules],
    ]
    digest.update(json.dumps(parts).encode())
    return digest.hexdigest()


def program_key(base_key: str, program: Program) -> str:
    """Return what a worker's image depends on, as a digest."""
    parts = [base_key, program.main, dict(program.modules), program.configuration]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def base_image(engine: Engine, code: Module, start: Module, guest: Guest, key: str) -> Image:
    """Initialise a guest and run its boot scripts. `start` is the memory its wasm begins with."""
    instance = Instance(engine, code, start, memory_limit_bytes=4 << 30)
    try:
        loading = _Loading(instance, Inbox(0, 0), cpu_seconds=_BOOT_CPU_SECONDS)
        if instance.exports(b"_initialize"):
            loading.call(instance.function(b"_initialize", (), None))
        loading.call(
            instance.function(b"belem_init", (_I32, _I32), None),
            guest.stack_bytes,
            guest.gc_threshold_bytes,
        )
        for script in guest.scripts:
            loading.load(script, _RUN_SCRIPT)
        for module in guest.modules:
            loading.load(module, _ADD_MODULE)
        memory = loading.finish()
        return loading.image(key, code, engine.compile(image_module(memory)))
    except LoadError as error:
        raise GuestInvalid(f"Guest {guest.name!r} did not boot: {error}\n{error.stack}") from error
    finally:
        instance.close()


def worker_image(
    engine: Engine,
    base: Image,
    program: Program,
    limits: Limits,
    key: str,
    *,
    base_memory: bytes,
) -> Image:
    """Configure a copy of the base image and evaluate a worker's modules in it."""
    if program.main not in program.modules:
        raise LoadError("Error", f"The main module {program.main!r} is not among the modules.")
    if base.memory_bytes > limits.memory_bytes:
        raise MemoryLimitExceeded(limits.memory_bytes)
    instance = Instance(engine, base.code, base.memory, memory_limit_bytes=limits.memory_bytes)
    try:
        loading = _Loading(
            instance,
            Inbox(base.inbox_address, base.inbox_capacity),
            cpu_seconds=limits.startup_cpu_ms / 1000,
            memory_limit_bytes=limits.memory_bytes,
            log_bytes=limits.log_bytes,
        )
        loading.configure(program.configuration)
        for name, source in program.modules.items():
            loading.load(Script(name, source), _ADD_MODULE)
        loading.load(Script(program.main, ""), _EVALUATE_MAIN)
        memory = loading.finish()
        patch = difference(base_memory, memory)
        if len(patch) > _PATCH_LIMIT_BYTES:
            return loading.image(key, base.code, engine.compile(image_module(memory)))
        return loading.image(key, base.code, base.memory, patch, base.key)
    finally:
        instance.close()


def whole_memory(engine: Engine, image: Image, *, base_memory: bytes) -> Module:
    """Return a memory that needs no patch: cheaper to spawn from, dearer to keep."""
    return engine.compile(image_module(apply(base_memory, image.patch, image.memory_bytes)))


class _Loading:
    """One run from a fresh instance to a kept memory, with what is left of its CPU time."""

    def __init__(
        self,
        instance: Instance,
        inbox: Inbox,
        *,
        cpu_seconds: float,
        memory_limit_bytes: int = 4 << 30,
        log_bytes: int = 1 << 20,
    ) -> None:
        self._instance = instance
        self._inbox = inbox
        self._cpu_seconds = cpu_seconds
        self._memory_limit_bytes = memory_limit_bytes
        self._log_bytes = log_bytes
        self._logs: list[LogLine] = []
        self._load = instance.function(b"belem_load", (_I32, _I32, _I32), _I64)

    def call(self, function: Function, *arguments: int) -> int:
        try:
            return call(self._instance, function, *arguments, cpu_seconds=self._cpu_seconds)
        except OverCpu as error:
            raise LoadError("Error", "Script startup exceeded CPU time limit.") from error
        except Trapped as error:
            if self._instance.memory_bytes + NEARLY_FULL_BYTES > self._memory_limit_bytes:
                raise LoadError("Error", self._memory_text()) from error
            raise LoadError(
                "Error", f"The worker's top level stopped the engine: {error}"
            ) from error

    def load(self, script: Script, flags: int) -> None:
        name = script.name.encode()
        if b"\0" in name:
            raise LoadError("Error", f"The module name {script.name!r} has a NUL in it.")
        source = script.source.encode("utf-8", "replace")
        self._write(name + b"\0" + source + b"\0")
        self._read(self.call(self._load, len(name), len(source), flags))

    def configure(self, configuration: Mapping[str, Json]) -> None:
        payload = b"configure\n" + json_bytes(configuration)
        record = pack(ToGuest.EVENT, 0, Type.TEXT, payload)
        self._write(record)
        self._read(self.call(self._instance.step, len(record), 0))

    def finish(self) -> bytes:
        """Collect garbage and return the memory."""
        instance = self._instance
        self.call(instance.function(b"belem_collect", (), None))
        self._inbox.capacity = 0  # collecting frees the boxes
        self._reserve(SMALLEST_BYTES)  # so that a small first batch needs no call for room
        return instance.read(0, instance.memory_bytes)

    def image(
        self, key: str, code: Module, memory: Module, patch: Patch = NO_PATCH, base: str = ""
    ) -> Image:
        """Return an image of the memory that has been finished."""
        return Image(
            key=key,
            code=code,
            memory=memory,
            memory_bytes=self._instance.memory_bytes,
            inbox_address=self._inbox.address,
            inbox_capacity=self._inbox.capacity,
            logs=tuple(self._logs),
            patch=patch,
            base=base,
        )

    def _write(self, data: bytes) -> None:
        self._reserve(len(data))
        self._instance.write(self._inbox.address, data)

    def _reserve(self, length: int) -> None:
        try:
            fits = reserve(self._instance, self._inbox, length)
        except (Trapped, OverCpu) as error:
            raise LoadError("Error", f"The guest gave no usable inbox: {error}") from error
        if not fits:
            raise LoadError("Error", self._memory_text())

    def _memory_text(self) -> str:
        return f"Script startup exceeded the memory limit of {self._memory_limit_bytes >> 20} MiB."

    def _read(self, result: int) -> None:
        try:
            for kind, _, _, payload in parse(read_outbox(self._instance, result, 64 << 20)):
                if kind == ToHost.LOG:
                    self._log(payload)
                elif kind == ToHost.FAULT:
                    raise _load_error(read_object(payload, 1 << 20))
                elif kind == ToHost.OP:
                    raise LoadError("Error", _IO_AT_TOP_LEVEL)
                else:
                    raise ProtocolBreach(f"a record of kind {kind} while loading")
        except (ProtocolBreach, Trapped) as error:
            raise LoadError("Error", f"The guest broke the protocol: {error}") from error

    def _log(self, payload: bytes) -> None:
        self._log_bytes -= len(payload)
        if self._log_bytes < 0 or len(self._logs) >= _MAX_LOGS:
            return
        line = read_object(payload, len(payload))
        self._logs.append(LogLine(0, str(line.get("level")), str(line.get("text"))))


_IO_AT_TOP_LEVEL: Final = (
    "Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or connect()), "
    "setting a timeout, and generating random values are not allowed within global scope."
)
_POSITION: Final = re.compile(
    r"(?:\(|@|\s)((?:file:///)?[^\s()@]+?):(\d+)(?::(\d+))?\)?\s*$", re.MULTILINE
)


def _load_error(fault: Mapping[str, Json]) -> LoadError:
    stack = str(fault.get("stack") or "")
    found = _POSITION.search(stack)
    return LoadError(
        str(fault.get("name") or "Error"),
        str(fault.get("message") or ""),
        stack,
        file=found[1].removeprefix("file:///") if found else None,
        line=int(found[2]) if found else None,
        column=int(found[3]) if found and found[3] else None,
    )
