"""The device that computes: chosen once, before TensorFlow runs its first operation."""

import os
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from belem.runtime.inference.errors import DeviceUnavailable

__all__ = ["Device", "DeviceThread", "choose_device", "pin", "prepare_environment"]

# Hoisting out of the loop over layers would widen every layer's weights at once: several times the
# memory and the traffic of the narrow ones.
_XLA_FLAGS: Final = (
    "--xla_disable_hlo_passes="
    "while-loop-invariant-code-motion,while-loop-expensive-invariant-code-motion"
)
_CHOICE: Final = re.compile(r"auto|cpu|gpu:(\d{1,3})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Device:
    """Where graphs are pinned. `name` is TensorFlow's: /device:CPU:0."""

    name: str
    kind: Literal["cpu", "gpu"]
    description: str


class DeviceThread:
    """The one thread that runs a device's steps, so that the event loop never computes."""

    def __init__(self, device: Device) -> None:
        label = device.name.removeprefix("/device:").replace(":", "-").lower()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"belem-{label}")

    def submit(self, job: Callable[[], object]) -> "Future[object]":
        """Run a job after those that came before it."""
        return self._executor.submit(job)

    def close(self) -> None:
        """Let the job that runs finish, and drop the others. Safe to call twice."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def prepare_environment(cache: Path, choice: str) -> None:
    """Set what TensorFlow reads when it is imported. Call before any import of it.

    Compiled graphs are kept in `cache`. They are executable code, so nobody else may write there.
    """
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    cache.chmod(0o700)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # XLA computes everything; and it is noisy
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_XLA_FLAGS}".strip()
    flags = f"--tf_xla_persistent_cache_directory={cache}"
    os.environ["TF_XLA_FLAGS"] = f"{os.environ.get('TF_XLA_FLAGS', '')} {flags}".strip()
    if choice == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # no driver is looked for: a faster start


def choose_device(choice: str, *, memory_limit_mb: int | None = None) -> Device:
    """Pin TensorFlow to `cpu`, `gpu:N` or, with `auto`, the first GPU or else the CPU.

    A limit makes a logical device of that size; without one a GPU's memory grows as it is needed.
    """
    # Here, so that the environment has been prepared.
    from belem.runtime.inference.tensorflow_api import tf

    return pin(tf.config, choice, memory_limit_mb=memory_limit_mb)


def pin(config: Any, choice: str, *, memory_limit_mb: int | None) -> Device:
    """Make one device visible through `config`, which is TensorFlow's, and name it."""
    match = _CHOICE.fullmatch(choice)
    if match is None:
        raise DeviceUnavailable(f"'{choice}' is no device; the choices are cpu, gpu:N and auto.")
    gpus: list[Any] = [] if choice == "cpu" else config.list_physical_devices("GPU")
    index = int(match[1] or 0)
    if choice not in ("auto", "cpu") and index >= len(gpus):
        raise DeviceUnavailable(f"There is no {choice}; TensorFlow sees {len(gpus)} GPUs here.")
    if not gpus:
        config.set_visible_devices([], "GPU")
        return Device("/device:CPU:0", "cpu", f"{os.cpu_count()} CPU cores")
    gpu = gpus[index]
    config.set_visible_devices([gpu], "GPU")
    if memory_limit_mb is None:  # growth and logical devices exclude each other
        config.experimental.set_memory_growth(gpu, True)
    else:
        logical = config.LogicalDeviceConfiguration(memory_limit=memory_limit_mb)
        config.set_logical_device_configuration(gpu, [logical])
    details: dict[str, object] = config.experimental.get_device_details(gpu)
    return Device("/device:GPU:0", "gpu", str(details.get("device_name", "GPU")))
