"""A small Llama with random weights: its GGUF file, and what it computes, in plain NumPy.

The reference rotates neighbouring values, as GGUF stores them, and has no cache: nothing of how the
product computes is in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

__all__ = ["CHAT_TEMPLATE", "TinyLlama"]

Array = NDArray[np.float32]

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_MERGES = ("h e", "l l", "he ll", "hell o", "Ġ w", "o r")


@dataclass
class TinyLlama:
    """The numbers of the model; change them, or `metadata` and `tensors`, before writing it."""

    layers: int = 2
    width: int = 48
    feed_forward: int = 64
    heads: int = 6
    kv_heads: int = 2
    head_width: int = 8
    context_tokens: int = 96
    rope_base: float = 10_000.0
    epsilon: float = 1e-5
    tied: bool = True
    seed: int = 1
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])  # Any: a writer's arguments
    path: Path = Path()
    tensors: dict[str, Array] = field(init=False)

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        queries, keys = self.heads * self.head_width, self.kv_heads * self.head_width

        def matrix(out: int, width: int) -> Array:
            values = random.standard_normal((out, width), np.float32)
            return values / np.float32(np.sqrt(width))

        def gain() -> Array:
            return 1 + np.float32(0.1) * random.standard_normal(self.width, np.float32)

        vocabulary = len(self.tokens)
        self.tensors = {"token_embd.weight": matrix(vocabulary, self.width)}
        self.tensors["output_norm.weight"] = gain()
        if not self.tied:
            self.tensors["output.weight"] = matrix(vocabulary, self.width)
        for layer in range(self.layers):
            self.tensors |= {
                f"blk.{layer}.attn_norm.weight": gain(),
                f"blk.{layer}.attn_q.weight": matrix(queries, self.width),
                f"blk.{layer}.attn_k.weight": matrix(keys, self.width),
                f"blk.{layer}.attn_v.weight": matrix(keys, self.width),
                f"blk.{layer}.attn_output.weight": matrix(self.width, queries),
                f"blk.{layer}.ffn_norm.weight": gain(),
                f"blk.{layer}.ffn_gate.weight": matrix(self.feed_forward, self.width),
                f"blk.{layer}.ffn_up.weight": matrix(self.feed_forward, self.width),
                f"blk.{layer}.ffn_down.weight": matrix(self.width, self.feed_forward),
            }

    @property
    def tokens(self) -> list[str]:
        """The vocabulary: control tokens, the 256 bytes in their stand-ins, the merges."""
        printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        others = len([byte for byte in range(256) if byte not in printable])
        stand_ins = [*map(chr, printable), *(chr(0x100 + i) for i in range(others))]
        return [*_CONTROL, *stand_ins, *(merge.replace(" ", "") for merge in _MERGES)]

    def write(self, path: Path) -> Path:
        """Write the file as a converter of Llamas would."""
        self.path = path
        writer = gguf.GGUFWriter(path, "llama")
        for key, value in (self._metadata() | self.metadata).items():
            _add(writer, key, value)
        for name, values in self.tensors.items():
            writer.add_tensor(name, values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def logits(self, ids: Sequence[int]) -> Array:
        """Compute the logits [tokens, vocabulary] of a whole sequence at once."""
        x = self.tensors["token_embd.weight"][list(ids)].astype(np.float64)
        for layer in range(self.layers):
            x = self._layer(x, {k: self.tensors[f"blk.{layer}.{k}.weight"] for k in _LAYER})
        head = self.tensors.get("output.weight", self.tensors["token_embd.weight"])
        normal = self._normalise(x, self.tensors["output_norm.weight"])
        return (normal @ head.T.astype(np.float64)).astype(np.float32)

    def greedy(self, ids: Sequence[int], count: int) -> list[int]:
        """Continue a sequence with the likeliest tokens."""
        sequence = list(ids)
        for _ in range(count):
            sequence.append(int(self.logits(sequence)[-1].argmax()))
        return sequence[len(ids) :]

    def _layer(self, x: NDArray[np.float64], w: Mapping[str, Array]) -> NDArray[np.float64]:
        tokens = len(x)
        h = self._normalise(x, w["attn_norm"])
        query = self._rotate((h @ w["attn_q"].T).reshape(tokens, self.heads, -1))
        key = self._rotate((h @ w["attn_k"].T).reshape(tokens, self.kv_heads, -1))
        value = (h @ w["attn_v"].T).reshape(tokens, self.kv_heads, -1)
        mixed = np.empty_like(query)
        for head in range(self.heads):
            shared = head // (self.heads // self.kv_heads)
            scores = query[:, head] @ key[:, shared].T / np.sqrt(self.head_width)
            scores[np.triu_indices(tokens, 1)] = -np.inf
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            mixed[:, head] = shares / shares.sum(-1, keepdims=True) @ value[:, shared]
        x = x + mixed.reshape(tokens, -1) @ w["attn_output"].T
        h = self._normalise(x, w["ffn_norm"])
        gate, up = h @ w["ffn_gate"].T, h @ w["ffn_up"].T
        added: NDArray[np.float64] = (gate / (1 + np.exp(-gate)) * up) @ w["ffn_down"].T
        return x + added

    def _normalise(self, x: NDArray[np.float64], gain: Array) -> NDArray[np.float64]:
        size: NDArray[np.float64] = np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon)
        return x / size * gain

    def _rotate(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        pairs = np.arange(0, self.head_width, 2) / self.head_width
        angles = np.arange(len(x))[:, None, None] / self.rope_base**pairs
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = np.empty_like(x)
        turned[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
        turned[..., 1::2] = odd * np.cos(angles) + even * np.sin(angles)
        return turned

    def _metadata(self) -> dict[str, Any]:
        return {
            "llama.block_count": self.layers,
            "llama.embedding_length": self.width,
            "llama.feed_forward_length": self.feed_forward,
            "llama.attention.head_count": self.heads,
            "llama.attention.head_count_kv": self.kv_heads,
            "llama.attention.key_length": self.head_width,
            "llama.attention.layer_norm_rms_epsilon": self.epsilon,
            "llama.context_length": self.context_tokens,
            "llama.rope.freq_base": self.rope_base,
            "llama.vocab_size": len(self.tokens),
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "smollm",
            "tokenizer.ggml.tokens": self.tokens,
            "tokenizer.ggml.token_type": [3] * len(_CONTROL)
            + [1] * (len(self.tokens) - len(_CONTROL)),
            "tokenizer.ggml.merges": list(_MERGES),
            "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.chat_template": CHAT_TEMPLATE,
        }


_LAYER = (
    *("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output"),
    *("ffn_norm", "ffn_gate", "ffn_up", "ffn_down"),
)


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    """Write a value; None leaves its key out."""
    match value:
        case None:
            pass
        case bool():
            writer.add_bool(key, value)
        case str():
            writer.add_string(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case _:
            writer.add_array(key, value)
