"""A Llama as a text backend: the buckets of shapes that are compiled, and the calls into them."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from belem.runtime.inference.device import Device
from belem.runtime.inference.errors import InferenceFailed
from belem.runtime.inference.memory import require_memory
from belem.runtime.inference.tensorflow_api import tf
from belem.runtime.inference.text.backend import Logits, Row
from belem.runtime.inference.text.gguf_file import GgufFile
from belem.runtime.inference.text.llama_graph import (
    LlamaGraph,
    WeightFormat,
    cache_bytes,
    weight_bytes,
)
from belem.runtime.inference.text.llama_weights import read_config

__all__ = ["LlamaBackend"]

_CHUNKS: Final = {"cpu": (16, 64, 256), "gpu": (32, 128, 512)}
_FORMATS: Final[dict[str, WeightFormat]] = {"cpu": "int8", "gpu": "bfloat16"}
_SHORT_ATTENTION: Final = 512
_COMPILED_BYTES: Final = 200 << 20  # code, and what the widest graph needs while it runs


class LlamaBackend:
    """Weights on a device. Shapes are rounded up to a few buckets, compiled by
    the jobs of `warm_ups`."""

    def __init__(
        self,
        path: Path,
        *,
        device: Device,
        slots: int,
        context_tokens: int,
        weights: WeightFormat | None = None,
        chunks: Sequence[int] | None = None,
    ) -> None:
        self._device = device
        self._chunks = tuple(chunks or _CHUNKS[device.kind])
        self._rows = _doubling(slots)
        format_ = weights or _FORMATS[device.kind]
        with GgufFile(path) as file:
            config = read_config(file)
            self._context_tokens = min(context_tokens, config.context_tokens)
            # A chunk's padding may reach behind the context, and must not be moved by XLA, which
            # shifts a slice that would leave its array.
            rows = self._context_tokens + self._chunks[-1]
            tied = "output.weight" not in file.tensors
            if device.kind == "cpu":
                need = weight_bytes(config, format_, tied=tied) + _COMPILED_BYTES
                require_memory(path.name, need + cache_bytes(config, slots + 1, rows))
            with _on(device):
                self._graph = LlamaGraph(file, config, weights=format_, slots=slots, rows=rows)
        self._lengths = sorted({min(_SHORT_ATTENTION, rows), rows})
        self._compiled: dict[tuple[str, int, int], Callable[..., Any]] = {}

    @property
    def slots(self) -> int:
        """The number of sequences that the cache holds."""
        return self._graph.slots

    @property
    def context_tokens(self) -> int:
        """The number of tokens that a sequence may have."""
        return self._context_tokens

    @property
    def bytes(self) -> int:
        """The memory of weights and cache."""
        return self._graph.bytes

    @property
    def vocabulary(self) -> int:
        """The number of tokens that the model knows."""
        return self._graph.config.vocabulary

    @property
    def compiled_count(self) -> int:
        """The number of graphs that were compiled. It stands still once all jobs have run."""
        return len(self._compiled)

    def prefill(self, slot: int, start: int, tokens: Sequence[int]) -> Logits:
        """Feed tokens from position `start` on; return the logits after the last."""
        logits: Logits | None = None
        for begin in range(0, len(tokens), self._chunks[-1]):
            logits = self._chunk(slot, start + begin, tokens[begin : begin + self._chunks[-1]])
        if logits is None:
            raise InferenceFailed("There is no token to feed.")
        return logits

    def decode(self, rows: Sequence[Row]) -> Logits:
        """Feed one token to each of some slots; return logits [rows, vocabulary]."""
        count = _at_least(self._rows, len(rows))
        padding = [Row(self.slots, 0, 0)] * (count - len(rows))
        table = np.array(
            [(row.token, row.position, row.slot) for row in [*rows, *padding]], np.int32
        )
        length = _at_least(self._lengths, int(table[:, 1].max()) + 1)
        graph = self._get("decode", count, length)
        return self._run(graph, *table.T)[: len(rows)]

    def warm_ups(self, *, long: bool) -> Sequence[Callable[[], object]]:
        """Return the jobs that compile and run each bucket once."""
        spare = self.slots
        jobs: list[Callable[[], object]] = []
        for length in self._lengths[1:] if long else self._lengths[:1]:
            for count in self._rows:
                jobs.append(partial(self._warm, "decode", count, length, [[0] * count] * 3))
            for tokens in self._chunks:
                if tokens <= length:
                    arguments = [[0] * tokens, 0, spare, 0]
                    jobs.append(partial(self._warm, "prefill", tokens, length, arguments))
        return jobs

    def _warm(self, kind: str, count: int, length: int, arguments: Sequence[object]) -> None:
        self._run(self._get(kind, count, length), *arguments)

    def _chunk(self, slot: int, start: int, tokens: Sequence[int]) -> Logits:
        count = _at_least(self._chunks, len(tokens))
        length = _at_least(self._lengths, start + count)
        ids = np.zeros(count, np.int32)
        ids[: len(tokens)] = tokens
        graph = self._get("prefill", count, length)
        return self._run(graph, ids, start, slot, len(tokens) - 1)

    def _get(self, kind: str, count: int, length: int) -> Callable[..., Any]:
        key = (kind, count, length)
        if key not in self._compiled:
            build = self._graph.decode_graph if kind == "decode" else self._graph.prefill_graph
            with _on(self._device):
                self._compiled[key] = build(count, length)
        return self._compiled[key]

    def _run(self, graph: Callable[..., Any], *arguments: Any) -> Logits:
        try:
            with _on(self._device):
                inputs = [tf.constant(argument, tf.int32) for argument in arguments]
                logits: Logits = graph(*inputs).numpy()
        except tf.errors.OpError as error:
            raise InferenceFailed(f"{self._device.name} could not compute: {error}") from error
        return logits


def _on(device: Device) -> Any:
    return tf.device(device.name)


def _doubling(most: int) -> tuple[int, ...]:
    sizes = [1]
    while sizes[-1] < most:
        sizes.append(min(sizes[-1] * 2, most))
    return tuple(sizes)


def _at_least(sizes: Sequence[int], need: int) -> int:
    for size in sizes:
        if size >= need:
            return size
    raise InferenceFailed(f"{need} rows are over the {sizes[-1]} that were compiled.")
