"""Choosing a device, against a recording of TensorFlow's configuration."""

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from belem.runtime.inference.device import Device, DeviceThread, pin
from belem.runtime.inference.errors import DeviceUnavailable


@dataclass
class Configuration:
    """TensorFlow's configuration on a machine with some GPUs."""

    gpus: int
    calls: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    @property
    def experimental(self) -> "Configuration":
        return self

    def set_memory_growth(self, gpu: str, on: bool) -> None:
        self.calls.append(("growth", gpu, on))

    def get_device_details(self, gpu: str) -> dict[str, object]:
        return {"device_name": f"{gpu} by name"}

    def list_physical_devices(self, kind: str) -> list[str]:
        return [f"{kind}-{index}" for index in range(self.gpus)]

    def set_visible_devices(self, devices: list[str], kind: str) -> None:
        self.calls.append(("visible", *devices))

    def LogicalDeviceConfiguration(self, memory_limit: int) -> int:  # TensorFlow's
        return memory_limit

    def set_logical_device_configuration(self, gpu: str, logical: list[int]) -> None:
        self.calls.append(("logical", gpu, *logical))


def test_auto_takes_the_first_gpu_and_lets_its_memory_grow() -> None:
    config = Configuration(gpus=2)

    device = pin(config, "auto", memory_limit_mb=None)

    assert device == Device("/device:GPU:0", "gpu", "GPU-0 by name")
    assert config.calls == [("visible", "GPU-0"), ("growth", "GPU-0", True)]


def test_auto_takes_the_cpu_where_there_is_no_gpu() -> None:
    assert pin(Configuration(gpus=0), "auto", memory_limit_mb=None).name == "/device:CPU:0"


def test_a_chosen_gpu_is_the_only_one_that_is_seen() -> None:
    config = Configuration(gpus=3)

    assert pin(config, "gpu:2", memory_limit_mb=None).description == "GPU-2 by name"
    assert config.calls[0] == ("visible", "GPU-2")


def test_a_memory_limit_makes_a_logical_device_instead_of_growth() -> None:
    config = Configuration(gpus=1)

    pin(config, "gpu:0", memory_limit_mb=4096)

    assert config.calls == [("visible", "GPU-0"), ("logical", "GPU-0", 4096)]


def test_the_cpu_hides_the_gpus() -> None:
    config = Configuration(gpus=2)

    assert pin(config, "cpu", memory_limit_mb=None).kind == "cpu"
    assert config.calls == [("visible",)]


def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(DeviceUnavailable, match=r"There is no gpu:1; TensorFlow sees 1 GPUs"):
        pin(Configuration(gpus=1), "gpu:1", memory_limit_mb=None)


@pytest.mark.parametrize("choice", ["", "tpu", "gpu", "gpu:-1", "gpu:1x", "CPU"])
def test_what_is_no_device_is_refused(choice: str) -> None:
    with pytest.raises(DeviceUnavailable, match="the choices are cpu, gpu:N and auto"):
        pin(Configuration(gpus=9), choice, memory_limit_mb=None)


def test_a_devices_thread_runs_jobs_in_order_under_its_name() -> None:
    thread = DeviceThread(Device("/device:GPU:1", "gpu", ""))
    ran: list[str] = []

    def job(index: int) -> None:
        ran.append(f"{index} {threading.current_thread().name}")

    for index in range(3):
        thread.submit(partial(job, index))
    thread.submit(lambda: None).result(timeout=10)
    thread.close()
    thread.close()

    assert ran == [f"{index} belem-gpu-1_0" for index in range(3)]


def test_the_names_of_models_are_read_without_tensorflow() -> None:
    code = (
        "import sys, belem.runtime.inference, belem.runtime.inference.store; "
        "print([m for m in ('tensorflow', 'grpc', 'numpy') if m in sys.modules])"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(Path("src").resolve())},
    )

    assert ran.stdout.strip() == b"[]"


def test_compiled_graphs_are_kept_where_only_the_user_writes(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from belem.runtime.inference.device import prepare_environment; "
        f"import os; prepare_environment(Path({str(tmp_path / 'c')!r}), 'cpu'); "
        "print(os.environ['TF_XLA_FLAGS'], os.environ['CUDA_VISIBLE_DEVICES'])"
    )
    (tmp_path / "c").mkdir(mode=0o777)

    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(Path("src").resolve())},
    )

    assert f"--tf_xla_persistent_cache_directory={tmp_path / 'c'} -1" in ran.stdout.decode()
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700
