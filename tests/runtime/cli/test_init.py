from pathlib import Path

import pytest
from click.testing import CliRunner

from belem.runtime.cli.init import init
from belem.runtime.project import StarterError, load_project


def test_init_writes_a_worker_named_after_its_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(init, [str(tmp_path / "My Shop")])

    assert result.exit_code == 0
    assert "  src/index.ts\n" in result.output
    assert result.output.endswith(f"Run it with:\n  belem dev '{tmp_path}/My Shop'\n")
    assert load_project(tmp_path / "My Shop").name == "my-shop"


def test_init_takes_a_language_and_a_name(tmp_path: Path) -> None:
    result = CliRunner().invoke(init, [str(tmp_path / "x"), "--lang", "js", "--name", "shop"])

    assert result.exit_code == 0
    assert load_project(tmp_path / "x").main == tmp_path / "x/src/index.js"
    assert load_project(tmp_path / "x").name == "shop"


def test_init_fills_the_folder_that_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")

    result = CliRunner().invoke(init, [])

    assert result.output.endswith("Wrote the worker shop. Run it with:\n  belem dev\n")
    assert load_project(Path()).name == "shop"


def test_init_leaves_a_full_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()

    result = CliRunner().invoke(init, [str(tmp_path)])

    assert isinstance(result.exception, StarterError)
