import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from belem.runtime.cli.root import main
from belem.sdk import UserError


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["belem", *arguments])
    with pytest.raises(SystemExit) as leaving:
        main()
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


def test_version_imports_no_command(tmp_path: Path) -> None:
    program = (
        "import sys; from belem.runtime.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'starlette', 'uvicorn', 'wasmtime', 'grpc', 'httpx', 'tensorflow', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program, "--version"], capture_output=True, text=True, check=True
    )

    version, modules = ran.stdout.splitlines()
    assert version.startswith("belem 0.")
    assert modules == "[]"


def test_help_lists_every_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(monkeypatch, "--help")

    shown = capsys.readouterr().out
    assert status == 0
    for name in ("init", "dev", "serve", "deploy", "list", "delete", "ai", "inference"):
        assert f"  {name} " in shown


def test_every_command_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("init", "dev", "serve", "deploy", "list", "delete", "ai", "inference"):
        assert run(monkeypatch, name, "--help") == 0 or name == "inference"


def test_an_unknown_command_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "frobnicate") == 2
    assert "No such command 'frobnicate'" in capsys.readouterr().err


def test_an_error_is_one_line_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise UserError("Key is 600 bytes; the limit is 512.")

    monkeypatch.setattr("belem.runtime.cli.root.belem", fail)

    assert run(monkeypatch) == 1
    shown = capsys.readouterr()
    assert shown.err == "Error: Key is 600 bytes; the limit is 512.\n"
    assert shown.out == ""


def test_a_missing_optional_part_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError("No module named 'gguf'", name="gguf")

    monkeypatch.setattr("importlib.import_module", missing)

    assert run(monkeypatch, "ai", "models") == 1
    assert "pip install 'belem[models]'" in capsys.readouterr().err


def test_the_daemon_takes_over_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from belem.runtime.cli.inference import inference

    calls: list[list[str]] = []

    def execute(path: str, arguments: list[str]) -> None:
        assert path == sys.executable
        calls.append(arguments)

    monkeypatch.setattr("os.execv", execute)

    CliRunner().invoke(inference, ["serve", "--listen", "127.0.0.1:0", "--help"])

    assert calls == [
        [sys.executable, "-m", "belem.runtime.inference", "--listen", "127.0.0.1:0", "--help"]
    ]


def test_grpc_is_told_not_to_watch_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRPC_ENABLE_FORK_SUPPORT", raising=False)

    run(monkeypatch, "--version")

    assert os.environ["GRPC_ENABLE_FORK_SUPPORT"] == "0"
