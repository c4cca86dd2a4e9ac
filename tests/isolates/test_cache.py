"""The code cache: ours alone, atomic, and distrustful of damage."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import wasmtime

from belem.isolates.cache import CacheRefused, CodeCache
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


def test_the_least_recently_used_modules_are_forgotten(
    tmp_path: Path, engine: Engine, module: Module
) -> None:
    cache = CodeCache(tmp_path / "code", kept_modules=2)
    for age, key in enumerate(("old", "older")):
        cache.save(key, module, {})
        os.utime(tmp_path / "code" / f"{key}.json", (1000 - age, 1000 - age))

    cache.load(engine, "older")  # which makes it the newer one
    cache.save("new", module, {})

    assert cache.load(engine, "old") is None
    assert cache.load(engine, "older") is not None
    assert len(list((tmp_path / "code").iterdir())) == 4
