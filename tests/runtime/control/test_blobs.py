from pathlib import Path

import pytest

from belem.runtime.control.blobs import Blobs
from belem.runtime.control.errors import StoreFault


def test_content_comes_back_by_its_digest(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")

    digest = blobs.put(b"content")

    assert len(digest) == 64
    assert blobs.get(digest) == b"content"
    assert blobs.put(b"content") == digest


def test_damage_is_noticed(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    digest = blobs.put(b"content")
    (tmp_path / digest[:2] / digest[2:]).write_bytes(b"other")

    with pytest.raises(StoreFault, match="damaged"):
        blobs.get(digest)


def test_putting_mends_damage(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    digest = blobs.put(b"content")
    (tmp_path / digest[:2] / digest[2:]).write_bytes(b"other")

    blobs.put(b"content")

    assert blobs.get(digest) == b"content"


def test_a_missing_blob_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StoreFault, match=r"0000.* is missing"):
        Blobs(tmp_path).get("0" * 64)


def test_what_is_unused_or_half_written_goes(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    kept, unused = blobs.put(b"kept"), blobs.put(b"unused")
    (tmp_path / "new-crashed").write_bytes(b"half")

    blobs.keep_only({kept})

    assert blobs.get(kept) == b"kept"
    with pytest.raises(StoreFault):
        blobs.get(unused)
    assert not (tmp_path / "new-crashed").exists()
