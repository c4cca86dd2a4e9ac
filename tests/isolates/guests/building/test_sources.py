"""Pinned sources: fetched once, checked always, never run."""

import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from belem.isolates.guests.building import BuildFailed, Sdist, Sources
from belem.isolates.guests.building.sources import pip_download


def _archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _pin(content: bytes) -> Sdist:
    return Sdist("some-lib", "1.0", hashlib.sha256(content).hexdigest())


class FakeIndex:
    """Gives out one file for whatever is asked."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content
        self.asked: list[str] = []

    def __call__(self, sdists: Sequence[Sdist], folder: Path) -> None:
        for sdist in sdists:
            self.asked.append(sdist.name)
            if self.content is not None:
                folder.joinpath(sdist.file_name).write_bytes(self.content)


def test_an_archive_is_downloaded_once_and_unpacked(tmp_path: Path) -> None:
    content = _archive({"some_lib-1.0/src/a.c": b"int a;"})
    index = FakeIndex(content)
    sources = Sources(tmp_path / "sources", download=index)

    sources.fetch([_pin(content)])
    sources.fetch([_pin(content)])
    folder = sources.unpack(_pin(content), tmp_path / "out")

    assert index.asked == ["some-lib"]
    assert folder.joinpath("src/a.c").read_bytes() == b"int a;"


def test_a_tampered_download_is_refused_and_not_kept(tmp_path: Path) -> None:
    index = FakeIndex(b"something else")
    sources = Sources(tmp_path, download=index)

    with pytest.raises(BuildFailed, match="the reviewed one has"):
        sources.fetch([_pin(b"the reviewed archive")])

    assert list(tmp_path.iterdir()) == []


def test_a_kept_archive_that_was_changed_is_fetched_again(tmp_path: Path) -> None:
    content = _archive({"some_lib-1.0/a.c": b""})
    sources = Sources(tmp_path, download=FakeIndex(content))
    tmp_path.joinpath(_pin(content).file_name).write_bytes(b"rotten")

    sources.fetch([_pin(content)])

    assert tmp_path.joinpath(_pin(content).file_name).read_bytes() == content


def test_an_index_without_the_archive_is_named(tmp_path: Path) -> None:
    sources = Sources(tmp_path, download=FakeIndex(None))

    with pytest.raises(BuildFailed, match=r"gave no some_lib-1\.0\.tar\.gz"):
        sources.fetch([_pin(b"x")])


def test_an_archive_that_writes_outside_its_folder_is_refused(tmp_path: Path) -> None:
    content = _archive({"../outside.c": b"int x;"})
    sources = Sources(tmp_path / "sources", download=FakeIndex(content))
    sources.fetch([_pin(content)])

    with pytest.raises(tarfile.OutsideDestinationError):
        sources.unpack(_pin(content), tmp_path / "out")

    assert not tmp_path.joinpath("outside.c").exists()


def _local_index(folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point pip at a folder: no network."""
    folder.mkdir()
    folder.joinpath("belem_probe-1.0.tar.gz").write_bytes(content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


def _probe_sdist(witness: Path) -> bytes:
    """Return an sdist whose set-up code would leave a file behind."""
    return _archive(
        {
            "belem_probe-1.0/PKG-INFO": b"Metadata-Version: 2.1\nName: belem-probe\nVersion: 1.0\n",
            "belem_probe-1.0/setup.py": f"open({str(witness)!r}, 'w').close()".encode(),
            "belem_probe-1.0/pyproject.toml": (
                b'[build-system]\nrequires = ["setuptools"]\n'
                b'build-backend = "setuptools.build_meta"\n'
            ),
        }
    )


def test_pip_downloads_an_sdist_without_running_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = tmp_path / "was-run"
    content = _probe_sdist(witness)
    _local_index(tmp_path / "index", content, monkeypatch)
    target = tmp_path / "target"
    target.mkdir()

    pip_download([Sdist("belem-probe", "1.0", hashlib.sha256(content).hexdigest())], target)

    assert target.joinpath("belem_probe-1.0.tar.gz").read_bytes() == content
    assert not witness.exists()


def test_pip_itself_refuses_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = _probe_sdist(tmp_path / "was-run")
    _local_index(tmp_path / "index", content, monkeypatch)
    target = tmp_path / "target"
    target.mkdir()

    with pytest.raises(BuildFailed, match=r"(?s)could not download belem-probe.*Got"):
        pip_download([Sdist("belem-probe", "1.0", "0" * 64)], target)

    assert list(target.iterdir()) == []
