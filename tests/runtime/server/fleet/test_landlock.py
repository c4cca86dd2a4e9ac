"""Landlock cannot be undone, so each test restricts a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from belem.runtime.server.fleet.landlock import is_available

pytestmark = pytest.mark.skipif(not is_available(), reason="this kernel has no Landlock")

PROGRAM = """
import os, signal, sys
from pathlib import Path
from belem.runtime.server.fleet.hardening import give_up_rights
from belem.runtime.server.fleet.landlock import allow_only, files_to_run

own, secret, parent = Path(sys.argv[1]), Path(sys.argv[2]), os.getppid()
give_up_rights()
allow_only(read=files_to_run(), write=[own, Path(os.devnull)])

def refused(work):
    try:
        work()
    except PermissionError:
        return True
    return False

(own / "mine").write_text("mine")
os.replace(own / "mine", own / "still-mine")
print(
    (own / "still-mine").read_text(),
    refused(secret.read_text),
    refused(lambda: secret.write_text("poison")),
    refused(lambda: list(secret.parent.iterdir())),
    refused(lambda: (Path.home() / ".belem-test").write_text("x")),
    refused(lambda: Path(f"/proc/{parent}/environ").read_bytes()),
)
import email.mime.audio, sqlite3, ssl  # what is read later still can be
"""


def test_a_process_reaches_its_folder_and_what_it_runs_from_and_nothing_else(
    tmp_path: Path,
) -> None:
    own, secret = tmp_path / "own", tmp_path / "others" / "secret"
    own.mkdir()
    secret.parent.mkdir()
    secret.write_text("secret")

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(own), str(secret)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ran.stderr == ""
    assert ran.stdout.split() == ["mine", "True", "True", "True", "True", "True"]
    assert secret.read_text() == "secret"
