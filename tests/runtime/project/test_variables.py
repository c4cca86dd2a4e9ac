from pathlib import Path

import pytest

from belem.runtime.project import ConfigError
from belem.runtime.project.variables import read_variables


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / ("." + name.replace("__", "."))).write_text(text)


def test_dev_vars_are_read(tmp_path: Path) -> None:
    write(tmp_path, dev__vars="# keys\nexport A=1\nB=\"two # not\"\nC='${A}'\nD=${A}\n\nE=\n")

    assert read_variables(tmp_path, None).values == {
        "A": "1", "B": "two # not", "C": "${A}", "D": "${A}", "E": ""
    }  # fmt: skip


def test_the_file_of_the_environment_stands_for_the_plain_one(tmp_path: Path) -> None:
    write(tmp_path, dev__vars="A=1\nB=1", dev__vars__staging="A=2")

    assert read_variables(tmp_path, "staging").values == {"A": "2"}
    assert read_variables(tmp_path, "production").values == {"A": "1", "B": "1"}
    assert read_variables(tmp_path, None).values == {"A": "1", "B": "1"}


def test_dotenv_files_are_joined_where_there_are_no_dev_vars(tmp_path: Path) -> None:
    write(tmp_path, env="A=1\nB=1\nC=1\nD=1", env__local="B=2\nC=2\nD=2")
    write(tmp_path, env__staging="C=3\nD=3", env__staging__local="D=4")

    assert read_variables(tmp_path, None).values == {"A": "1", "B": "2", "C": "2", "D": "2"}
    staging = read_variables(tmp_path, "staging").values
    assert staging == {"A": "1", "B": "2", "C": "2", "D": "4"}


def test_dev_vars_hide_dotenv_files(tmp_path: Path) -> None:
    write(tmp_path, env="A=1", dev__vars="B=1")

    assert read_variables(tmp_path, None).values == {"B": "1"}


def test_all_files_that_could_count_are_named(tmp_path: Path) -> None:
    variables = read_variables(tmp_path, None)

    assert variables.values == {}
    assert {path.name for path in variables.files} == {".dev.vars", ".env", ".env.local"}


@pytest.mark.parametrize("text", ["A=1\nsecret value\n", "A=1\nTOKEN\n"])
def test_a_line_that_is_none_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    write(tmp_path, dev__vars=text)

    with pytest.raises(ConfigError, match=r"\.dev\.vars:2: the line is not") as caught:
        read_variables(tmp_path, None)

    assert "secret" not in str(caught.value)


def test_a_name_that_is_no_identifier_is_refused(tmp_path: Path) -> None:
    write(tmp_path, dev__vars="A-B=hunter2")

    with pytest.raises(ConfigError, match='"A-B"; it must be a JavaScript identifier') as caught:
        read_variables(tmp_path, None)

    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".dev.vars").write_bytes(b"A=\xff")

    with pytest.raises(ConfigError, match="is not UTF-8"):
        read_variables(tmp_path, None)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    write(tmp_path, dev__vars="#" * (1 << 20) + "\n")

    with pytest.raises(ConfigError, match="the limit is 1048576 bytes"):
        read_variables(tmp_path, None)
