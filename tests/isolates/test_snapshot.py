"""Wasm taken apart and put together: valid modules come out, hostile files raise."""

import random

import pytest
import wasmtime

from belem.isolates.errors import GuestInvalid
from belem.isolates.snapshot import image_module, split_guest
from tests.isolates import wat

PAGE = 65536


def memory_of(module: bytes) -> bytes:
    """Instantiate an image and read its memory."""
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    instance = wasmtime.Instance(store, wasmtime.Module(engine, module), [])
    memory = instance.exports(store)["memory"]
    assert isinstance(memory, wasmtime.Memory)
    return bytes(memory.read(store))


def test_a_split_guest_imports_its_memory_and_nothing_else() -> None:
    parts = split_guest(wat.wasm())

    module = wasmtime.Module(wasmtime.Engine(), parts.engine)

    assert [(entry.module, entry.name) for entry in module.imports] == [("env", "memory")]


def test_the_image_of_a_guest_holds_its_data() -> None:
    parts = split_guest(wat.wasm(extra='(data (i32.const 1000) "hello")'))

    memory = memory_of(parts.image)

    assert len(memory) == 8 * PAGE
    assert memory[1000:1005] == b"hello"
    assert memory.count(0) == len(memory) - 5


@pytest.mark.parametrize(
    "offsets",
    [
        [],
        [0],
        [3 * PAGE - 1],
        [4095, 4096],
        [10, 5000, 100_000, 2 * PAGE],
        list(range(0, 3 * PAGE, 997)),
    ],
    ids=len,
)
def test_an_image_is_the_memory_it_was_made_from(offsets: list[int]) -> None:
    memory = bytearray(3 * PAGE)
    for offset in offsets:
        memory[offset] = 7

    assert memory_of(image_module(bytes(memory))) == memory


def test_an_image_of_random_pages_is_exact() -> None:
    dice = random.Random(3)
    memory = b"".join(
        dice.randbytes(4096) if dice.random() < 0.3 else bytes(4096) for _ in range(64)
    )

    module = image_module(memory)

    assert memory_of(module) == memory
    assert len(module) < len(memory)


def test_a_memory_of_half_a_page_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number"):
        image_module(bytes(PAGE // 2))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('(import "wasi" "read" (func)) (memory 1) (global (mut i32) (i32.const 0))', "may import"),
        ("(memory 1)", "0 mutable globals"),
        (
            "(memory 1) (global (mut i32) (i32.const 0)) (global (mut i32) (i32.const 0))",
            "2 mutable globals",
        ),
        ("(memory 1) (global (mut i64) (i64.const 0))", "not a constant i32"),
        ("(global (mut i32) (i32.const 0))", "0 memories"),
        ("(memory 1) (func $s) (start $s) (global (mut i32) (i32.const 0))", "start function"),
        ('(memory 1) (global (mut i32) (i32.const 0)) (data "passive")', "data segment 0"),
        (
            '(memory 1) (global (mut i32) (i32.const 0)) (data (i32.const 65530) "outside")',
            "ends at 65537",
        ),
    ],
)  # fmt: skip
def test_a_guest_whose_state_is_not_its_memory_is_refused(text: str, reason: str) -> None:
    module = bytes(wasmtime.wat2wasm(f"(module {text})"))

    with pytest.raises(GuestInvalid, match=reason):
        split_guest(module)


def test_a_file_that_ends_early_is_refused_at_every_length() -> None:
    whole = wat.wasm(extra='(data (i32.const 8) "data")')

    for length in range(len(whole)):
        try:
            split_guest(whole[:length])
        except GuestInvalid:
            continue
        assert length > 8  # cut between sections: still a module, but without what was cut off


def test_damaged_files_raise_nothing_else() -> None:
    whole, dice = wat.wasm(), random.Random(5)

    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        try:
            split_guest(bytes(damaged))
        except GuestInvalid:
            continue
