"""What TensorFlow reads when it is imported must be set before any test module imports it."""

import os
import tempfile
from pathlib import Path

import pytest

from belem.runtime.inference.device import Device, prepare_environment
from tests.runtime.inference.tiny_llama import TinyLlama

# Of this user: two users may test on one machine.
prepare_environment(Path(tempfile.gettempdir()) / f"belem-tests-{os.getuid()}", "cpu")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    """Give a small model with random weights, written as a GGUF file."""
    model = TinyLlama()
    model.write(tmp_path_factory.mktemp("tiny") / "tiny.gguf")
    return model


@pytest.fixture(scope="session")
def cpu() -> Device:
    return Device("/device:CPU:0", "cpu", "for tests")
