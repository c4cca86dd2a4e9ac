from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belem.bindings.ai import AIBinding, InferenceClient
from tests.bindings.ai.daemon import FakeDaemon, saying


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix:{tmp_path}/daemon.sock"


@pytest.fixture
async def daemon(address: str) -> AsyncIterator[FakeDaemon]:
    async with FakeDaemon(address, saying("The capital", " is", " Paris.")).running() as daemon:
        yield daemon


@pytest.fixture
async def client(address: str) -> AsyncIterator[InferenceClient]:
    async with InferenceClient(address) as client:
        yield client


@pytest.fixture
def binding(client: InferenceClient) -> AIBinding:
    return AIBinding(client)
