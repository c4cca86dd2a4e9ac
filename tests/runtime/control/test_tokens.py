import stat
from pathlib import Path

import pytest

from belem.runtime.control import ensure_token, read_token
from belem.runtime.control.tokens import BadTokenFile


def test_a_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "token"

    token = ensure_token(path)

    assert len(token) >= 43
    assert ensure_token(path) == token == read_token(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["token"]


def test_an_empty_token_is_no_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("\n")

    with pytest.raises(BadTokenFile, match="has 0 characters; it needs at least 16"):
        ensure_token(path)


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"\xff" * 40)

    with pytest.raises(BadTokenFile, match="cannot be read"):
        read_token(path)
