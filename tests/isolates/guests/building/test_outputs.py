"""Built files kept by key."""

import fcntl
import threading
from pathlib import Path

import pytest

from belem.isolates.guests.building import BuildFailed, Outputs
from belem.isolates.guests.building.outputs import install
from belem.sdk.folders import user_cache_directory


def _not_waiting() -> None:
    raise AssertionError("nobody else builds")


def test_a_key_is_built_once(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path / "guests")
    folders: list[Path] = []

    def build(folder: Path) -> Path:
        folders.append(folder)
        made = folder / "scratch.bin"
        made.write_bytes(b"built")
        return made

    first = outputs.find_or_build("key", "x.wasm", build, waiting=_not_waiting)
    second = outputs.find_or_build("key", "x.wasm", build, waiting=_not_waiting)

    assert first == second == tmp_path / "guests" / "key" / "x.wasm"
    assert first.read_bytes() == b"built"
    assert len(folders) == 1
    assert not folders[0].exists()


def test_a_failed_build_leaves_nothing_behind(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path)

    def fail(folder: Path) -> Path:
        folder.joinpath("half.bin").write_bytes(b"half")
        raise BuildFailed("no")

    with pytest.raises(BuildFailed):
        outputs.find_or_build("key", "x.wasm", fail, waiting=_not_waiting)

    assert outputs.find("key", "x.wasm") is None
    assert [path.name for path in tmp_path.iterdir()] == ["key.lock"]


def test_of_two_concurrent_builds_one_waits_and_takes_the_other_ones_result(tmp_path: Path) -> None:
    started, release = threading.Event(), threading.Event()
    told = threading.Event()
    results: list[Path] = []

    def slow(folder: Path) -> Path:
        started.set()
        assert release.wait(30)
        made = folder / "scratch.bin"
        made.write_bytes(b"from the first")
        return made

    def never(folder: Path) -> Path:
        raise AssertionError("built twice")

    def run_first() -> None:
        results.append(Outputs(tmp_path).find_or_build("key", "x.wasm", slow, waiting=_not_waiting))

    first = threading.Thread(target=run_first)
    first.start()
    assert started.wait(30)

    def waiting() -> None:
        told.set()
        release.set()

    second = Outputs(tmp_path).find_or_build("key", "x.wasm", never, waiting=waiting)
    first.join(30)

    assert told.is_set()
    assert results == [second]
    assert second.read_bytes() == b"from the first"


def test_waiting_for_another_build_ends_with_the_name_of_the_lock(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path, lock_timeout_seconds=0)
    with tmp_path.joinpath("key.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        def never(folder: Path) -> Path:
            raise AssertionError("built in spite of the lock")

        with pytest.raises(BuildFailed, match=r"key\.lock for 0 seconds"):
            outputs.find_or_build("key", "x.wasm", never, waiting=lambda: None)


def test_install_copies_only_what_is_not_there(tmp_path: Path) -> None:
    built, target = tmp_path / "built", tmp_path / "target"
    built.write_bytes(b"one")

    assert install(built, target)
    assert not install(built, target)
    built.write_bytes(b"two")
    assert install(built, target)

    assert target.read_bytes() == b"two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["built", "target"]


def test_the_cache_folder_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert user_cache_directory() == tmp_path / ".cache" / "belem"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert user_cache_directory() == tmp_path / "elsewhere" / "belem"
