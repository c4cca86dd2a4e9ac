"""The code cache: ours alone, atomic, and distrustful of damage."""

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import wasmtime

from belem.isolates.cache import CacheRefused, CodeCache
from belem.isolates.patch import Patch, difference
from belem.isolates.wasm import Engine, EngineConfig, Module

WASM = bytes(wasmtime.wat2wasm('(module (memory (export "memory") 1))'))


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineConfig())
    yield engine
    engine.close()


@pytest.fixture
def module(engine: Engine) -> Module:
    return engine.compile(WASM)


def test_a_saved_module_is_loaded_with_its_facts(
    tmp_path: Path, engine: Engine, module: Module
) -> None:
    cache = CodeCache(tmp_path / "code")

    cache.save("key", module, {"inbox": 7})
    loaded = CodeCache(tmp_path / "code").load(engine, "key")

    assert loaded is not None
    assert loaded[1]["inbox"] == 7
    assert cache.load(engine, "other") is None


def test_files_are_for_this_user_alone(tmp_path: Path, module: Module) -> None:
    CodeCache(tmp_path / "code").save("key", module, {})

    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "code").iterdir()}

    assert (tmp_path / "code").stat().st_mode & 0o777 == 0o700
    assert modes == {"key.cwasm": 0o600, "key.json": 0o600}


def test_a_folder_open_to_others_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    with pytest.raises(CacheRefused, match="its mode is 755"):
        CodeCache(tmp_path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(CacheRefused, match="not a folder"):
        CodeCache(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    os.chown(tmp_path, 12345, -1)

    with pytest.raises(CacheRefused, match="belongs to user 12345"):
        CodeCache(tmp_path)


@pytest.mark.parametrize(
    "damage", ["truncated", "flipped", "no code", "no facts", "bad facts", "list"]
)
def test_a_damaged_entry_is_not_loaded(
    tmp_path: Path, engine: Engine, module: Module, damage: str
) -> None:
    cache = CodeCache(tmp_path / "code")
    cache.save("key", module, {})
    code, facts = tmp_path / "code" / "key.cwasm", tmp_path / "code" / "key.json"
    content = bytearray(code.read_bytes())

    if damage == "truncated":
        code.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
        code.write_bytes(content)
    elif damage == "no code":
        code.unlink()
    elif damage == "no facts":
        facts.unlink()
    else:
        facts.write_text("{" if damage == "bad facts" else "[]")

    assert cache.load(engine, "key") is None


def patch_of(content: bytes) -> Patch:
    return difference(bytes(1 << 16), content + bytes((1 << 16) - len(content)))


PATCH = patch_of(b"abc")


def test_a_saved_patch_is_loaded_with_its_facts(tmp_path: Path) -> None:
    CodeCache(tmp_path / "code").save_patch("key", PATCH, {"inbox": 7})

    loaded = CodeCache(tmp_path / "code").load_patch("key")

    assert loaded == (PATCH, {"inbox": 7})
    assert CodeCache(tmp_path / "code").load_patch("other") is None
    assert (tmp_path / "code" / "key.patch").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "no facts", "bad run"])
def test_a_damaged_patch_is_not_loaded(tmp_path: Path, damage: str) -> None:
    cache = CodeCache(tmp_path / "code")
    cache.save_patch("key", PATCH, {})
    path = tmp_path / "code" / "key.patch"
    content = bytearray(path.read_bytes())

    if damage == "empty":
        content.clear()
    elif damage == "truncated":
        del content[-3:]
    elif damage == "flipped":
        content[-1] ^= 1
    else:
        body = b"[]\n" if damage == "no facts" else b"{}\n" + bytes(11)
        content[:] = hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    path.write_bytes(content)

    assert cache.load_patch("key") is None


def test_over_its_limit_the_cache_forgets_what_was_used_the_longest_ago(
    tmp_path: Path, engine: Engine, module: Module
) -> None:
    folder = tmp_path / "code"
    cache = CodeCache(folder, limit_bytes=48 << 10)
    cache.save("oldest", module, {})
    os.utime(folder / "oldest.json", (1000, 1000))
    os.utime(folder / "oldest.cwasm", (1000, 1000))
    for age, key in enumerate(("old", "older")):
        cache.save_patch(key, patch_of(b"x" * (16 << 10)), {})
        os.utime(folder / f"{key}.patch", (2000 - age, 2000 - age))

    cache.load_patch("older")  # which makes it the newer one
    cache.save_patch("new", patch_of(b"x" * (12 << 10)), {})

    assert cache.load(engine, "oldest") is None
    assert sorted(path.name for path in folder.iterdir()) == ["new.patch", "older.patch"]


def test_what_a_crash_left_half_written_is_removed_in_time(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    cache = CodeCache(folder)
    for name, written in (("crashed", 1000.0), ("writing", time.time())):
        (folder / f".new-{name}").write_bytes(b"half")
        os.utime(folder / f".new-{name}", (written, written))

    cache.save_patch("key", PATCH, {})

    assert sorted(path.name for path in folder.iterdir()) == [".new-writing", "key.patch"]
