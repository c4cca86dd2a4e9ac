import datetime
from pathlib import Path

import pytest

from belem.runtime.project import (
    AIBinding,
    Builder,
    ConfigError,
    KVBinding,
    StarterError,
    create_starter,
    load_project,
)
from belem.runtime.project.starter import Language

TODAY = datetime.date(2026, 5, 17)


@pytest.mark.parametrize("language", ["ts", "js"])
def test_a_starter_is_a_project_without_warnings(
    builder: Builder, tmp_path: Path, language: Language
) -> None:
    create_starter(tmp_path / "new/shop", "shop", language, today=TODAY)

    project = load_project(tmp_path / "new/shop")
    bundle = builder.build(project)

    assert (project.name, project.compatibility_date) == ("shop", "2026-05-17")
    assert project.bindings == (KVBinding("CACHE", "CACHE"), AIBinding("AI"))
    assert project.warnings == ()
    assert bundle.main == f"src/index.{language}"


def test_all_files_are_written_and_named(tmp_path: Path) -> None:
    written = create_starter(tmp_path, "shop", "ts", today=TODAY)

    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert there == {str(path.relative_to(tmp_path)) for path in written}
    assert there == {
        ".gitignore",
        "README.md",
        "src/index.ts",
        "tsconfig.json",
        "worker-configuration.d.ts",
        "wrangler.jsonc",
    }
    assert not any("{{" in path.read_text() for path in written)
    assert (tmp_path / "README.md").read_text().startswith("# shop\n")


def test_a_javascript_starter_has_no_typescript(tmp_path: Path) -> None:
    written = create_starter(tmp_path, "shop", "js", today=TODAY)

    assert {path.name for path in written} == {
        ".gitignore", "README.md", "index.js", "wrangler.jsonc"
    }  # fmt: skip


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()

    with pytest.raises(StarterError, match=r"is not empty: it has mine\.txt"):
        create_starter(tmp_path, "shop", "ts", today=TODAY)

    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_repository_without_files_is_as_good_as_empty(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    assert create_starter(tmp_path, "shop", "js", today=TODAY)


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop").touch()

    with pytest.raises(StarterError, match="is a file; a project needs a folder"):
        create_starter(tmp_path / "shop", "shop", "ts", today=TODAY)
    with pytest.raises(StarterError, match="cannot be written: Not a directory"):
        create_starter(tmp_path / "shop/in", "shop", "ts", today=TODAY)


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lower-case"):
        create_starter(tmp_path / "x", "My Shop", "ts", today=TODAY)

    assert not (tmp_path / "x").exists()
