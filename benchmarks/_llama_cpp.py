"""llama.cpp, built at its first use into the user's cache folder, and run as its own process."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any, cast

__all__ = ["LlamaCpp"]

VERSION = "0.3.36"

# CPU features by their names in /proc/cpuinfo and in llama.cpp's build. Told one by one and not by
# GGML_NATIVE, which would use AMX where a hypervisor announces it and does not let it run.
FEATURES = {
    "avx": "GGML_AVX",
    "avx2": "GGML_AVX2",
    "f16c": "GGML_F16C",
    "fma": "GGML_FMA",
    "bmi2": "GGML_BMI2",
    "avx512f": "GGML_AVX512",
    "avx512vbmi": "GGML_AVX512_VBMI",
    "avx512_vnni": "GGML_AVX512_VNNI",
    "avx512_bf16": "GGML_AVX512_BF16",
}
NOT_BUILT = ("LLAVA_BUILD", "LLAMA_BUILD_TOOLS", "LLAMA_BUILD_SERVER", "LLAMA_BUILD_EXAMPLES")

# Runs in the peer's environment: reads {"prompt": tokens, "count": n}, answers with seconds.
PEER = """
import json, sys, time
from llama_cpp import Llama
model = Llama(sys.argv[1], n_ctx=1024, n_threads=int(sys.argv[2]), n_threads_batch=int(sys.argv[2]),
              verbose=False)
print("{}", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    model.reset()
    start = time.perf_counter()
    first = None
    for index, _ in enumerate(model.generate(asked["prompt"], temp=0.0, reset=False)):
        now = time.perf_counter()
        first = first or now
        if index == asked["count"]:
            break
    print(json.dumps({"prefill_s": first - start, "decode_s": now - first}), flush=True)
"""


class LlamaCpp:
    """A loaded model in another process."""

    def __init__(self, weights: Path) -> None:
        python = _installed()
        self._process = subprocess.Popen(
            [str(python), "-c", PEER, str(weights), str(os.cpu_count() or 1)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._read()

    def run(self, prompt: list[int], count: int) -> tuple[float, float]:
        """Generate `count` tokens behind the first; return the seconds for prompt and tokens."""
        stdin = cast("IO[str]", self._process.stdin)
        stdin.write(json.dumps({"prompt": prompt, "count": count}) + "\n")
        stdin.flush()
        answer = self._read()
        return answer["prefill_s"], answer["decode_s"]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _read(self) -> dict[str, Any]:
        line = cast("IO[str]", self._process.stdout).readline()
        if not line:
            raise SystemExit("llama.cpp ended without an answer")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _installed() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "belem" / "benchmarks" / f"llama-cpp-python-{VERSION}"
    python = folder / "bin" / "python"
    done = folder / ".installed"
    if done.exists():
        return python
    print(
        f"building llama.cpp (llama-cpp-python {VERSION}); this takes minutes ...", file=sys.stderr
    )
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    # pip would take a wheel that it built before with other options.
    install = ["install", "--quiet", "--no-cache-dir", f"llama-cpp-python=={VERSION}"]
    built = subprocess.run(
        [str(python), "-m", "pip", *install],
        env=os.environ | {"CMAKE_ARGS": _build_options()},
        check=False,
    )
    if built.returncode:
        raise SystemExit(
            "llama.cpp could not be built: it needs a C++ compiler and the registry. Run with "
            "--without-peer to measure without it."
        )
    done.touch()
    print(f"built in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return python


def _build_options() -> str:
    options = [f"-D{name}=OFF" for name in NOT_BUILT]
    try:
        present = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        present = set[str]()
    if not present & FEATURES.keys():  # not x86
        return " ".join([*options, "-DGGML_NATIVE=ON"])
    features = [
        f"-D{option}={'ON' if name in present else 'OFF'}" for name, option in FEATURES.items()
    ]
    return " ".join([*options, "-DGGML_NATIVE=OFF", *features])
