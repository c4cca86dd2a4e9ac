"""The JavaScript guest with its boot code."""

import pytest

from belem.isolates import Host
from tests.support.javascript import JavaScript


@pytest.fixture
def js(host: Host) -> JavaScript:
    return JavaScript(host)
