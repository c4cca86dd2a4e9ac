"""Small hand-made guests: the ABI in a few lines of wasm text, with a `belem_step` to order."""

from pathlib import Path

import wasmtime

from belem.isolates import Guest
from belem.sdk.abi import ToGuest

INBOX = 65536
OUTBOX = 131072

# One REPLY that carries the event's head back, then SETTLED: for an EVENT of type TEXT.
ECHO = f"""
  (local $length i32)
  (if (i32.eqz (i32.load (i32.const {INBOX + 4}))) (then (return (i64.const 0)))) ;; configure
  (local.set $length (i32.load (i32.const {INBOX + 12})))
  (i32.store (i32.const {OUTBOX}) (i32.const 3))
  (i32.store (i32.const {OUTBOX + 4}) (i32.load (i32.const {INBOX + 4})))
  (i32.store (i32.const {OUTBOX + 8}) (i32.const 1))
  (i32.store (i32.const {OUTBOX + 12}) (local.get $length))
  (memory.copy (i32.const {OUTBOX + 16}) (i32.const {INBOX + 16}) (local.get $length))
  (local.set $length (i32.and (i32.add (local.get $length) (i32.const 3)) (i32.const -4)))
  (i32.store (i32.add (i32.const {OUTBOX + 16}) (local.get $length)) (i32.const 8))
  (i32.store (i32.add (i32.const {OUTBOX + 20}) (local.get $length))
             (i32.load (i32.const {INBOX + 4})))
  (i32.store (i32.add (i32.const {OUTBOX + 24}) (local.get $length)) (i32.const 0))
  (i32.store (i32.add (i32.const {OUTBOX + 28}) (local.get $length)) (i32.const 0))
  (i64.or (i64.shl (i64.const {OUTBOX}) (i64.const 32))
          (i64.extend_i32_u (i32.add (local.get $length) (i32.const 32))))
"""

# What is to be random, these guests take from nobody: the rest of the batch is what they look at.
SEED_BYTES = 48
UNSEEDED = f"""
  (if (i32.eq (i32.load (i32.const {INBOX})) (i32.const {ToGuest.SEED:d}))
    (then
      (local.set $bytes (i32.sub (local.get $bytes) (i32.const {SEED_BYTES})))
      (memory.copy (i32.const {INBOX}) (i32.const {INBOX + SEED_BYTES}) (local.get $bytes))))
"""

# Lets the configure event pass; what follows runs for every later step.
AFTER_CONFIGURE = f"""
  (if (i32.eqz (i32.load (i32.const {INBOX + 4}))) (then (return (i64.const 0))))
"""


def wasm(
    step: str = ECHO,
    *,
    inbox: str = f"(i32.const {INBOX})",
    load: str = "(i64.const 0)",
    extra: str = "",
) -> bytes:
    """Return a guest module."""
    return bytes(
        wasmtime.wat2wasm(f"""(module
  (memory (export "memory") 8)
  (global $stack (mut i32) (i32.const 65536))
  (func (export "belem_init") (param i32 i32))
  (func (export "belem_inbox") (param $bytes i32) (result i32) {inbox})
  (func (export "belem_load") (param i32 i32 i32) (result i64) {load})
  (func (export "belem_collect"))
  (func (export "belem_heap_bytes") (result i32) (i32.const 0))
  (func $step (param $bytes i32) (param $now i64) (result i64) {step})
  (func (export "belem_step") (param $bytes i32) (param $now i64) (result i64)
    {UNSEEDED}
    (call $step (local.get $bytes) (local.get $now)))
  {extra})""")
    )


def outbox_of(*records: bytes) -> tuple[str, str]:
    """Return a step that answers every batch with the same bytes, and the data segment it needs."""
    data = b"".join(records)
    text = "".join(f"\\{byte:02x}" for byte in data)
    segment = f'(data (i32.const {OUTBOX}) "{text}")'
    return AFTER_CONFIGURE + f"(i64.const {OUTBOX << 32 | len(data)})", segment


def guest(folder: Path, content: bytes) -> Guest:
    """Write a guest's wasm into a folder and describe it."""
    path = folder / "guest.wasm"
    path.write_bytes(content)
    return Guest(name="hand-made", wasm=path)
