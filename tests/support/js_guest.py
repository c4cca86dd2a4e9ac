"""Drives js.wasm by its ABI alone, with wasmtime's public API: no host of ours in between."""

import json
from dataclasses import dataclass
from typing import Final, cast

from wasmtime import Engine, Func, Instance, Memory, Module, Store

from belem.sdk.abi import RECORD, ToGuest, ToHost, Type
from belem.sdk.ops import Json

__all__ = ["JsGuest", "Record", "record"]

_ANSWER: Final = 77  # a kind of record that the ABI does not have: what evaluate() sends itself
_STASH: Final = "globalThis.H = __host"


@dataclass(frozen=True, slots=True)
class Record:
    """One record from the guest."""

    kind: int
    id: int
    type: int
    payload: bytes

    def json(self) -> Json:
        """Return the payload as JSON."""
        assert self.type == Type.JSON, self
        return cast(Json, json.loads(self.payload))  # json.loads is untyped


def record(kind: int, id: int = 0, type: int = Type.NONE, payload: bytes = b"") -> bytes:
    """Return a record for the guest."""
    return RECORD.pack(kind, id, type, len(payload)) + payload + bytes(-len(payload) % 4)


class JsGuest:
    """A fresh instance, initialised, with the native API at `globalThis.H`."""

    def __init__(
        self,
        engine: Engine,
        module: Module,
        *,
        stack_bytes: int = 256 << 10,
        memory_bytes: int = 64 << 20,
    ) -> None:
        self._store = Store(engine)
        self._store.set_limits(memory_size=memory_bytes)
        self._exports = Instance(self._store, module, []).exports(self._store)
        self._call("_initialize")
        self._call("belem_init", stack_bytes, 1 << 20)
        assert self.load("stash.js", _STASH) == []

    def load(self, name: str, source: str | bytes, flags: int = 0) -> list[Record]:
        """Call belem_load."""
        encoded = source.encode() if isinstance(source, str) else source
        self._fill(name.encode() + b"\0" + encoded)
        return self._outbox(self._call("belem_load", len(name.encode()), len(encoded), flags))

    def load_raw(
        self, inbox: bytes, name_bytes: int, source_bytes: int, flags: int
    ) -> list[Record]:
        """Call belem_load with lengths that need not be true."""
        self._fill(inbox)
        return self._outbox(self._call("belem_load", name_bytes, source_bytes, flags))

    def main(self, name: str, **modules: str) -> list[Record]:
        """Add modules ("a__js" is a.js, "lib_S_a__ts" is lib/a.ts) and evaluate one as the main."""
        for key, source in modules.items():
            assert self.load(key.replace("_S_", "/").replace("__", "."), source, 1) == []
        return self.load(name, "", 2)

    def step(self, *records: bytes, now_us: int = 1) -> list[Record]:
        """Call belem_step with a batch."""
        batch = b"".join(records)
        self._fill(batch)
        return self._outbox(self._call("belem_step", len(batch), now_us))

    def step_raw(self, inbox: bytes, length: int) -> list[Record]:
        """Call belem_step with a length that need not be true."""
        self._fill(inbox)
        return self._outbox(self._call("belem_step", length, 1))

    def seed(self, entropy: bytes) -> None:
        """Send a SEED."""
        assert self.step(record(ToGuest.SEED, 0, Type.BYTES, entropy)) == []

    def collect(self) -> None:
        """Call belem_collect."""
        self._call("belem_collect")

    def heap_bytes(self) -> int:
        """Call belem_heap_bytes."""
        return self._call("belem_heap_bytes")

    def init_again(self) -> None:
        """Call belem_init once more."""
        self._call("belem_init", 0, 0)

    def memory(self) -> bytes:
        """Return all of the linear memory."""
        return bytes(self._memory.read(self._store))

    def evaluate(self, body: str) -> Json:
        """Run a function body; return what it returned. A throw is an AssertionError."""
        name, value = self._run(body)
        assert name is None, value
        return value

    def throws(self, body: str) -> tuple[str, str]:
        """Run a function body that throws; return the error's name and message."""
        name, value = self._run(body)
        assert name is not None, value
        return name, cast(str, value)

    def _run(self, body: str) -> tuple[str | None, Json]:
        script = (
            f"{{ let answer$; try {{ answer$ = [null, (() => {{ {body}\n }})() ?? null] }}"
            f" catch (e) {{ answer$ = [e.name, e.message] }} H.send({_ANSWER}, 0, answer$) }}"
        )
        answers = [r for r in self.load("evaluate.js", script) if r.kind == _ANSWER]
        assert len(answers) == 1, answers
        name, value = cast(tuple[str | None, Json], answers[0].json())  # written just above
        return name, value

    @property
    def _memory(self) -> Memory:
        memory = self._exports["memory"]
        assert isinstance(memory, Memory)
        return memory

    def _call(self, name: str, *arguments: int) -> int:
        function = self._exports[name]
        assert isinstance(function, Func)
        return cast(int, function(self._store, *arguments) or 0)  # wasmtime's results are Any

    def _fill(self, data: bytes) -> None:
        address = self._call("belem_inbox", len(data)) & 0xFFFFFFFF
        assert address
        self._memory.write(self._store, data, address)

    def _outbox(self, location: int) -> list[Record]:
        location &= (1 << 64) - 1
        address, length = location >> 32, location & 0xFFFFFFFF
        data = bytes(self._memory.read(self._store, address, address + length))
        assert len(data) == length
        records: list[Record] = []
        at = 0
        while at < length:
            kind, id, type, size = RECORD.unpack_from(data, at)
            at += RECORD.size
            records.append(Record(kind, id, type, data[at : at + size]))
            assert not any(data[at + size : at + size + (-size % 4)]), "padding is zero"
            at += size + (-size % 4)
        assert at == length
        return records


def fault(records: list[Record]) -> dict[str, Json]:
    """Return the payload of the only record, which is a FAULT."""
    assert [r.kind for r in records] == [ToHost.FAULT], records
    payload = records[0].json()
    assert isinstance(payload, dict)
    return payload
