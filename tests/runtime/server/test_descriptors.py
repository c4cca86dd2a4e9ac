"""The limit of open files: raised as far as the system allows."""

import subprocess
import sys

_SCRIPT = """
import resource
from belem.runtime.server.descriptors import allow_many_descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
allow_many_descriptors()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def _limits_after(soft: int, hard: int) -> list[int]:
    script = _SCRIPT.format(soft=soft, hard=hard)
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    return [int(word) for word in shown.stdout.split()]


def test_the_soft_limit_becomes_the_hard_one() -> None:
    assert _limits_after(100, 900) == [900, 900]


def test_one_that_is_raised_already_stays() -> None:
    assert _limits_after(900, 900) == [900, 900]
