"""Llama models: the shape that a file's metadata tells, and the weights in the graph's order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from belem.runtime.inference.errors import BadModelFile
from belem.runtime.inference.text.gguf_file import GgufFile

__all__ = ["LayerWeights", "LlamaConfig", "layer_weights", "read_config", "unpermute"]

_ARCHITECTURE: Final = "llama"
_MAX_LAYERS: Final = 512
_MAX_WIDTH: Final = 1 << 17
_MAX_HEADS: Final = 1024
_MAX_VOCABULARY: Final = 1 << 20
_MAX_CONTEXT: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """The numbers that make one Llama differ from another."""

    layers: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    context_tokens: int
    rope_base: float
    epsilon: float

    @property
    def group(self) -> int:
        """The number of query heads that share one key head."""
        return self.heads // self.kv_heads

    @property
    def parameters(self) -> int:
        """The number of weights in matrices: the embedding counts once."""
        attention = self.width * self.head_width * (2 * self.heads + 2 * self.kv_heads)
        layer = attention + 3 * self.width * self.feed_forward
        return self.layers * layer + self.vocabulary * self.width


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer; matrices are [out, in]."""

    attention_norm: NDArray[np.float32]
    qkv: NDArray[np.float32]
    output: NDArray[np.float32]
    feed_forward_norm: NDArray[np.float32]
    gate_up: NDArray[np.float32]
    down: NDArray[np.float32]


def read_config(file: GgufFile) -> LlamaConfig:
    """Read the shape of the model, and refuse what the graph does not compute."""
    architecture = file.text("general.architecture")
    if architecture != _ARCHITECTURE:
        raise BadModelFile(
            f"{file.path}: the architecture '{architecture[:40]}' is not supported; "
            f"'{_ARCHITECTURE}' is."
        )

    def number(key: str, most: int, default: int | None = None) -> int:
        return file.integer(f"{_ARCHITECTURE}.{key}", default, least=1, most=most)

    heads = number("attention.head_count", _MAX_HEADS)
    width = number("embedding_length", _MAX_WIDTH)
    embedding = file.tensors.get("token_embd.weight")
    vocabulary = embedding.shape[0] if embedding else 1
    config = LlamaConfig(
        layers=number("block_count", _MAX_LAYERS),
        width=width,
        feed_forward=number("feed_forward_length", _MAX_WIDTH),
        heads=heads,
        kv_heads=number("attention.head_count_kv", _MAX_HEADS, heads),
        head_width=number("attention.key_length", _MAX_WIDTH, max(1, width // heads)),
        vocabulary=number("vocab_size", _MAX_VOCABULARY, vocabulary),
        context_tokens=number("context_length", _MAX_CONTEXT),
        rope_base=file.real(f"{_ARCHITECTURE}.rope.freq_base", 10_000.0, least=1.0, most=1e12),
        epsilon=file.real(f"{_ARCHITECTURE}.attention.layer_norm_rms_epsilon", least=0.0, most=1.0),
    )
    _refuse_variants(file, config)
    return config


def layer_weights(file: GgufFile, config: LlamaConfig) -> Iterator[LayerWeights]:
    """Read the layers one after the other, so that only one is in memory at full width."""
    width, hidden = config.width, config.feed_forward
    queries, keys = config.heads * config.head_width, config.kv_heads * config.head_width
    for layer in range(config.layers):
        prefix = f"blk.{layer}"
        query = file.tensor(f"{prefix}.attn_q.weight", (queries, width))
        key = file.tensor(f"{prefix}.attn_k.weight", (keys, width))
        value = file.tensor(f"{prefix}.attn_v.weight", (keys, width))
        gate = file.tensor(f"{prefix}.ffn_gate.weight", (hidden, width))
        up = file.tensor(f"{prefix}.ffn_up.weight", (hidden, width))
        yield LayerWeights(
            attention_norm=file.tensor(f"{prefix}.attn_norm.weight", (width,)),
            qkv=np.concatenate(
                [unpermute(query, config.heads), unpermute(key, config.kv_heads), value]
            ),
            output=file.tensor(f"{prefix}.attn_output.weight", (width, queries)),
            feed_forward_norm=file.tensor(f"{prefix}.ffn_norm.weight", (width,)),
            gate_up=np.concatenate([gate, up]),
            down=file.tensor(f"{prefix}.ffn_down.weight", (width, hidden)),
        )


def unpermute(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undo GGUF's order of the query and key rows.

    GGUF interleaves the two halves of a head for a rotation of neighbours; the graph rotates
    halves, which is one concatenation.
    """
    out, width = rows.shape
    paired = rows.reshape(heads, out // heads // 2, 2, width)
    return paired.swapaxes(1, 2).reshape(out, width)


def _refuse_variants(file: GgufFile, config: LlamaConfig) -> None:
    """Refuse Llamas that would load and then compute something else."""
    if config.heads % config.kv_heads:
        raise BadModelFile(
            f"{file.path}: {config.heads} heads cannot share {config.kv_heads} key heads."
        )
    if config.head_width % 2:
        raise BadModelFile(f"{file.path}: a head of {config.head_width} values has no halves.")
    rotated = file.integer(
        f"{_ARCHITECTURE}.rope.dimension_count", config.head_width, least=1, most=_MAX_WIDTH
    )
    if rotated != config.head_width:
        raise BadModelFile(
            f"{file.path}: rotating {rotated} of {config.head_width} values is not supported."
        )
    for key in (f"{_ARCHITECTURE}.rope.scaling.type", f"{_ARCHITECTURE}.expert_count"):
        if file.metadata.get(key) not in (None, "none", 0):
            raise BadModelFile(f"{file.path}: {key} = {file.metadata[key]!r} is not supported.")
    if "rope_freqs.weight" in file.tensors or "blk.0.attn_q.bias" in file.tensors:
        raise BadModelFile(f"{file.path}: scaled rotations and biases are not supported.")
