"""Tokens per second: the engine alone, through the daemon's gRPC, and llama.cpp on the same file.

    python -m benchmarks.text_generation [--rounds N] [--tokens N] [--without-peer]

Rounds alternate between the three, one at a time; medians are shown, and ratios to llama.cpp.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc.aio
from benchmarks._llama_cpp import LlamaCpp

from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.bindings.ai.v1 import inference_pb2_grpc as pb_grpc
from belem.runtime.inference.device import DeviceThread, choose_device, prepare_environment
from belem.runtime.inference.memory import resident_bytes
from belem.runtime.inference.store import Catalogue

MODEL = "@cf/meta/llama-3-8b-instruct"
PROMPT_TOKENS = 256
START_SECONDS = 300

Rates = tuple[float, float]  # prompt tokens and answer tokens, each per second


def prompt(round_: int) -> list[int]:
    """Return a prompt that no cache has seen."""
    return [100 + (round_ * 7919 + i * 31) % 40_000 for i in range(PROMPT_TOKENS)]


class EngineAlone:
    """The scheduler and the device in this process, without gRPC."""

    def __init__(self, weights: Path) -> None:
        from belem.runtime.inference.text.text_model import TextLimits, TextModel

        device = choose_device("auto")
        self.thread = DeviceThread(device)
        limits = TextLimits(slots=4, context_tokens=1024)
        started = time.monotonic()
        self.model = TextModel(weights, device=device, thread=self.thread, limits=limits)
        self.model.warm_up()
        print(
            f"engine: {device.name}, loaded and warm in {time.monotonic() - started:.1f} s, "
            f"{resident_bytes() >> 20} MB resident"
        )

    async def run(self, tokens: Sequence[int], count: int) -> Rates:
        """Generate greedily from one prompt."""
        from belem.runtime.inference.text.sampling import Sampling

        start = time.perf_counter()
        generation = self.model.generate(tokens, max_tokens=count + 1, sampling=Sampling())
        times = [time.perf_counter() async for _ in generation]
        return _rates(len(tokens), start, times)

    async def many(self, prompts: Sequence[Sequence[int]], count: int) -> float:
        """Return the tokens per second of several at once, prompts included."""
        start = time.perf_counter()
        await asyncio.gather(*(self.run(tokens, count) for tokens in prompts))
        return len(prompts) * count / (time.perf_counter() - start)


class Daemon:
    """The daemon as a process."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self.process = process
        self.address = address

    @classmethod
    async def start(cls) -> "Daemon":
        address = f"unix:{tempfile.mkdtemp(prefix='belem-bench-')}/d.sock"
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "belem.runtime.inference", "--listen", address),
            *("--context", "1024"),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            async for line in process.stdout:
                for event in ("ready on", "available"):
                    if event in line.decode():
                        print(
                            f"daemon: {event.split()[0]} after {time.monotonic() - started:.1f} s"
                        )
                if b"available" in line:
                    return cls(process, address)
        raise SystemExit("the daemon ended before its model was available")

    async def run(self, round_: int, count: int) -> Rates:
        """Generate greedily from a prompt of about the usual length."""
        words = " ".join(str(round_ * 1000 + i) for i in range(PROMPT_TOKENS // 5))
        request = pb.GenerateRequest(model=MODEL, prompt=words, raw=True, max_tokens=count + 1)
        async with grpc.aio.insecure_channel(self.address) as channel:
            stub: Any = pb_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]  # generated
            await channel.channel_ready()
            start = time.perf_counter()
            prompt_tokens = 0
            times: list[float] = []
            async for reply in stub.Generate(request):
                prompt_tokens = prompt_tokens or reply.started.prompt_tokens
                if reply.HasField("text"):
                    times += [time.perf_counter()] * reply.text.tokens
        return _rates(prompt_tokens, start, times)


def _rates(prompt_tokens: int, start: float, times: Sequence[float]) -> Rates:
    if len(times) < 2:
        raise SystemExit("an answer of fewer than two tokens cannot be measured")
    return prompt_tokens / (times[0] - start), (len(times) - 1) / (times[-1] - times[0])


async def measure(weights: Path, rounds: int, tokens: int, peer: LlamaCpp | None) -> None:
    """Run the rounds and print the table."""
    engine = EngineAlone(weights)
    daemon = await Daemon.start()
    rates: dict[str, list[Rates]] = {"engine alone": [], "through gRPC": [], "llama.cpp": []}
    together: list[float] = []
    try:
        for round_ in range(rounds):
            rates["engine alone"].append(await engine.run(prompt(round_), tokens))
            rates["through gRPC"].append(await daemon.run(round_, tokens))
            four = [prompt(1000 + 4 * round_ + i)[:32] for i in range(4)]
            together.append(await engine.many(four, tokens))
            if peer is not None:
                prefill_s, decode_s = await asyncio.to_thread(peer.run, prompt(round_), tokens)
                rates["llama.cpp"].append((PROMPT_TOKENS / prefill_s, tokens / decode_s))
    finally:
        daemon.process.terminate()
        await daemon.process.communicate()
        engine.model.close()
        engine.thread.close()
    show(rates)
    print(f"four answers at once, engine alone: {statistics.median(together):.0f} tokens/s in all")


def show(rates: Mapping[str, Sequence[Rates]]) -> None:
    """Print medians, and ratios to the peer where there is one."""
    medians = {
        name: tuple(statistics.median(column) for column in zip(*values, strict=True))
        for name, values in rates.items()
        if values
    }
    base = medians.get("llama.cpp")
    print(f"{'':14s} {'prompt tokens/s':>16s} {'tokens/s':>10s} {'to llama.cpp':>22s}")
    for name, (prefill, decode) in medians.items():
        ratio = f"{prefill / base[0]:.2f} prompt, {decode / base[1]:.2f}" if base else "-"
        print(f"{name:14s} {prefill:16.0f} {decode:10.1f} {ratio:>22s}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--without-peer", action="store_true")
    options = parser.parse_args()
    weights = Catalogue.load().resolve(MODEL).file
    if weights is None:
        raise SystemExit(f"the weights are not installed: belem ai pull {MODEL}")
    peer = None if options.without_peer else LlamaCpp(weights)
    with tempfile.TemporaryDirectory() as cache:
        prepare_environment(Path(cache), "auto")
        try:
            asyncio.run(measure(weights, options.rounds, options.tokens, peer))
        finally:
            if peer is not None:
                peer.close()


if __name__ == "__main__":
    main()
