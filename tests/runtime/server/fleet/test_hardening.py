"""What is given up cannot be had again, so each test uses a process of its own."""

import os
import subprocess
import sys

import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60
    )


@linux
def test_rights_are_given_up() -> None:
    ran = run("""
import re, resource
from belem.runtime.server.fleet.hardening import give_up_rights
give_up_rights(open_files=100)
status = open("/proc/thread-self/status").read()
print(re.search(r"NoNewPrivs:\\s*(\\d)", status)[1], resource.getrlimit(resource.RLIMIT_CORE)[0],
      resource.getrlimit(resource.RLIMIT_NOFILE))
""")

    assert ran.stderr == ""
    assert ran.stdout.strip() == "1 0 (100, 100)"


def test_a_parent_that_is_gone_already_is_noticed() -> None:
    program = "from belem.runtime.server.fleet.hardening import end_with_parent as f; f({})"

    assert run(program.format(os.getpid())).returncode == 0
    assert run(program.format(1)).returncode == 1
