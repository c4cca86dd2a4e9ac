"""The allocator, built alone."""

import itertools
import random
from collections.abc import Callable

import pytest
from wasmtime import Engine, Func, Instance, Memory, Module, Store, Trap

from belem.isolates.guests.building import Unit, Zig
from belem.isolates.guests.js.build import NATIVE

PAGE_BYTES = 65536
EXPORTS = ("malloc", "free", "realloc", "calloc", "malloc_usable_size")


@pytest.fixture(scope="module")
def wasm(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("allocator")
    folder.joinpath("allocator.c").write_bytes(NATIVE.joinpath("allocator.c").read_bytes())
    units = [Unit("allocator.c", ("-O2", "-fno-builtin"))]
    zig = Zig(folder)
    zig.compile(units, [])
    exports = [f"-Wl,--export={name}" for name in EXPORTS]
    return zig.link(
        units, [*exports, "-Wl,--strip-all", "-Wl,-z,stack-size=65536"], "allocator.wasm"
    ).read_bytes()


class Heap:
    """The allocator in a memory of its own."""

    def __init__(self, wasm: bytes, limit_bytes: int) -> None:
        engine = Engine()
        self._store = Store(engine)
        self._store.set_limits(memory_size=limit_bytes)
        exports = Instance(self._store, Module(engine, wasm), []).exports(self._store)
        memory = exports["memory"]
        assert isinstance(memory, Memory)
        self._memory = memory
        functions: dict[str, Callable[..., int]] = {}
        for name in EXPORTS:
            function = exports[name]
            assert isinstance(function, Func)
            functions[name] = function
        self._functions = functions

    def __call__(self, name: str, *arguments: int) -> int:
        result = self._functions[name](self._store, *arguments)
        return result & 0xFFFFFFFF if name != "free" else 0

    def fill(self, address: int, length: int, byte: int) -> None:
        self._memory.write(self._store, bytes([byte]) * length, address)

    def holds(self, address: int, length: int, byte: int) -> bool:
        data = bytes(self._memory.read(self._store, address, address + length))
        return data == bytes([byte]) * length

    def size(self) -> int:
        return self._memory.data_len(self._store)


@pytest.fixture
def heap(wasm: bytes) -> Heap:
    return Heap(wasm, 16 << 20)


@pytest.mark.parametrize("seed", range(4))
def test_random_use_never_overlaps_and_all_of_it_comes_back(wasm: bytes, seed: int) -> None:
    heap, dice = Heap(wasm, 8 << 20), random.Random(seed)
    live: dict[int, tuple[int, int]] = {}

    def length() -> int:
        return int(2 ** dice.uniform(0, 18 if dice.random() < 0.02 else 11))

    for step in range(3000):
        choice = dice.random()
        if live and choice < 0.3:
            address = dice.choice(list(live))
            size, byte = live.pop(address)
            assert heap.holds(address, size, byte)
            heap("free", address)
        elif live and choice < 0.45:
            address = dice.choice(list(live))
            size, byte = live.pop(address)
            wanted = length()
            moved = heap("realloc", address, wanted)
            assert moved
            assert heap.holds(moved, min(size, wanted), byte)
            heap.fill(moved, wanted, byte)
            live[moved] = (wanted, byte)
        else:
            wanted = length()
            address = heap("malloc", wanted)
            if not address:
                continue
            assert address % 16 == 0
            assert heap("malloc_usable_size", address) >= wanted
            heap.fill(address, wanted, step % 251)
            live[address] = (wanted, step % 251)
    for address, (size, byte) in live.items():
        assert heap.holds(address, size, byte)
        heap("free", address)

    grown = heap.size()
    stack_and_data_bytes = PAGE_BYTES + 8192
    assert grown >= 6 * PAGE_BYTES
    assert heap("malloc", grown - stack_and_data_bytes)  # one piece again
    assert heap.size() == grown


def test_blocks_do_not_overlap(heap: Heap) -> None:
    blocks = [(heap("malloc", size), size) for size in (1, 11, 12, 13, 28, 255, 256, 4096, 70000)]

    ordered = sorted(blocks)

    for (address, size), (after, _) in itertools.pairwise(ordered):
        assert address + size <= after


def test_freed_neighbours_serve_a_larger_request(heap: Heap) -> None:
    blocks = [heap("malloc", 100_000) for _ in range(20)]
    size = heap.size()
    for address in blocks[::2] + blocks[1::2]:
        heap("free", address)

    assert heap("malloc", 1_900_000)
    assert heap.size() == size


def test_overhead_is_small(heap: Heap) -> None:
    count = 1000
    for _ in range(count):
        assert heap("malloc", 4096)

    assert heap.size() < count * 4112 + 8 * PAGE_BYTES


def test_a_block_grows_in_place_where_there_is_room(heap: Heap) -> None:
    first, second = heap("malloc", 1000), heap("malloc", 1000)
    heap("free", second)

    assert heap("realloc", first, 1900) == first


def test_no_memory_is_null_and_leaves_the_rest_usable(wasm: bytes) -> None:
    heap = Heap(wasm, 2 << 20)

    assert heap("malloc", 100 << 20) == 0
    assert heap("malloc", 0x7FFFFFFF) == heap("malloc", 0xFFFFFFFF) == 0
    assert heap("calloc", 0x10000, 0x10000) == 0
    kept = heap("malloc", 1000)
    heap.fill(kept, 1000, 7)
    assert heap("realloc", kept, 100 << 20) == heap("realloc", kept, 0xFFFFFFF0) == 0
    assert heap.holds(kept, 1000, 7)
    blocks: list[int] = []
    while block := heap("malloc", 5000):
        blocks.append(block)
    assert len(blocks) * 5000 > heap.size() * 0.8 - 2 * PAGE_BYTES
    heap("free", blocks[3])
    assert heap("malloc", 5000) == blocks[3]


def test_calloc_clears_what_was_used_before(heap: Heap) -> None:
    used = heap("malloc", 500)
    heap.fill(used, 500, 0xFF)
    heap("free", used)

    again = heap("calloc", 50, 10)

    assert again == used
    assert heap.holds(again, 500, 0)


def test_nothing_is_freed_twice(heap: Heap) -> None:
    address = heap("malloc", 100)
    heap("free", address)
    heap("free", 0)

    with pytest.raises(Trap):
        heap("free", address)


def test_realloc_of_nothing_allocates_and_to_nothing_frees(heap: Heap) -> None:
    address = heap("realloc", 0, 64)
    assert address

    assert heap("realloc", address, 0) == 0
    assert heap("malloc", 64) == address
