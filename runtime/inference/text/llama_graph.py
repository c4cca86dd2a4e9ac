"""A Llama in TensorFlow: weights and cache in variables, one compiled graph for each shape.

Measured on CPUs, and what the shape of the code comes from:

- The layers are a loop over stacked weights. XLA fuses slice, widening and product into one pass
  over the narrow weights, and compiles one layer instead of thirty: 0.5 s instead of 5.
- That fusion exists for one row and weights [out, in]; more rows make XLA widen a copy. So a few
  rows are multiplied one by one, which also keeps a row's result independent of the others.
- XLA computes a cheap producer of the row anew for every output. A true division is not cheap for
  it: RMSNorm, SwiGLU and attention therefore all end in one.
- The cache is updated in place because it is read and assigned once in a graph.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from belem.runtime.inference.tensorflow_api import Tensor, tf
from belem.runtime.inference.text.attention import BatchAttention, ChunkAttention
from belem.runtime.inference.text.gguf_file import GgufFile
from belem.runtime.inference.text.llama_weights import LlamaConfig, layer_weights

__all__ = ["LlamaGraph", "WeightFormat", "cache_bytes", "weight_bytes"]

WeightFormat: TypeAlias = Literal["int8", "bfloat16", "float32"]

_Attention: TypeAlias = ChunkAttention | BatchAttention

_MATRICES: Final = ("qkv", "output", "gate_up", "down")
_NORMS: Final = ("attention_norm", "feed_forward_norm")
_TINY: Final = 1e-20  # keeps a row of zeros from dividing by zero
_MAX_ROWS_APART: Final = 8
_WIDTH_BYTES: Final = {"int8": 1, "bfloat16": 2, "float32": 4}


@dataclass(frozen=True, slots=True)
class _Matrix:
    """Weights [..., out, in], with a scale for each output where they are int8."""

    values: Tensor
    scales: Tensor | None


def weight_bytes(config: LlamaConfig, weights: WeightFormat, *, tied: bool) -> int:
    """Return what the weights will take, without their few vectors."""
    head = 0 if tied else config.vocabulary * config.width
    return (config.parameters + head) * _WIDTH_BYTES[weights]


def cache_bytes(config: LlamaConfig, slots: int, rows: int) -> int:
    """Return what the keys and values of `slots` sequences of `rows` tokens take."""
    return 2 * 4 * config.layers * slots * config.kv_heads * rows * config.head_width


class LlamaGraph:
    """The variables of one model, and the graphs over them.

    Slot `slots` is no sequence: it takes what the padding of a batch writes.
    """

    def __init__(
        self, file: GgufFile, config: LlamaConfig, *, weights: WeightFormat, slots: int, rows: int
    ) -> None:
        self.config = config
        self.slots = slots
        self.rows = rows
        self._format: WeightFormat = weights
        self._matrices: dict[str, _Matrix] = {}
        self._norms: dict[str, Tensor] = {}
        self._load_layers(file)
        self._embedding = self._matrix(
            file.tensor("token_embd.weight", (config.vocabulary, config.width))
        )
        self._head = self._embedding
        if "output.weight" in file.tensors:
            self._head = self._matrix(
                file.tensor("output.weight", (config.vocabulary, config.width))
            )
        self._final_norm = _variable(file.tensor("output_norm.weight", (config.width,)))
        self._cosine, self._sine = (_variable(table) for table in _rotations(config, rows))
        shape = (config.layers, slots + 1, config.kv_heads, rows, config.head_width)
        self._keys = _variable(tf.zeros(shape))
        self._values = _variable(tf.zeros(shape))

    @property
    def bytes(self) -> int:
        """The memory of all variables."""
        matrices = [*self._matrices.values(), self._embedding]
        if self._head is not self._embedding:
            matrices.append(self._head)
        variables = [self._keys, self._values, *self._norms.values()]
        variables += [part for matrix in matrices for part in (matrix.values, matrix.scales)]
        return sum(_bytes(variable) for variable in variables if variable is not None)

    def prefill_graph(self, tokens: int, attended: int) -> Tensor:
        """Return the graph (tokens, start, slot, last) -> logits [vocabulary].

        It feeds `tokens` tokens to one slot; they see the first `attended` rows of the cache.
        """

        def prefill(ids: Tensor, start: Tensor, slot: Tensor, last: Tensor) -> Tensor:
            positions = start + tf.range(tokens)
            x = self._layers(
                ids, positions, ChunkAttention(self.config, positions, start, slot, attended)
            )
            return self._logits(x[last][None])[0]

        signature = [tf.TensorSpec([tokens], tf.int32), *[tf.TensorSpec([], tf.int32)] * 3]
        return _compile(prefill, signature)

    def decode_graph(self, rows: int, attended: int) -> Tensor:
        """Return the graph (tokens, positions, slots) -> logits [rows, vocabulary]."""

        def decode(ids: Tensor, positions: Tensor, slots: Tensor) -> Tensor:
            x = self._layers(
                ids, positions, BatchAttention(self.config, positions, slots, attended)
            )
            return self._logits(x)

        return _compile(decode, [tf.TensorSpec([rows], tf.int32)] * 3)

    def _rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turn the halves of each head [rows, heads, head width] by its position."""
        half = self.config.head_width // 2
        cosine = tf.gather(self._cosine, positions)[:, None]
        sine = tf.gather(self._sine, positions)[:, None]
        a, b = x[..., :half], x[..., half:]
        return tf.concat([a * cosine - b * sine, b * cosine + a * sine], -1)

    def _layers(self, ids: Tensor, positions: Tensor, attention: _Attention) -> Tensor:
        def more(layer: Tensor, *_: Tensor) -> Tensor:
            return layer < self.config.layers

        def body(layer: Tensor, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
            x, keys, values = self._layer(layer, x, keys, values, positions, attention)
            return layer + 1, x, keys, values

        _, x, keys, values = tf.while_loop(
            more,
            body,
            [tf.constant(0), self._embed(ids), self._keys.read_value(), self._values.read_value()],
            maximum_iterations=self.config.layers,
            parallel_iterations=1,
        )
        self._keys.assign(keys)
        self._values.assign(values)
        return x

    def _layer(
        self,
        layer: Tensor,
        x: Tensor,
        keys: Tensor,
        values: Tensor,
        positions: Tensor,
        attention: _Attention,
    ) -> tuple[Tensor, Tensor, Tensor]:
        config = self.config
        rows = x.shape[0]
        h = self._normalise(x, tf.gather(self._norms["attention_norm"], layer))
        qkv = tf.reshape(self._product(h, "qkv", layer), [rows, -1, config.head_width])
        split = [config.heads, config.kv_heads, config.kv_heads]
        query, key, value = tf.split(qkv, split, axis=1)
        keys, values, mixed = attention.attend(
            layer, self._rotate(query, positions), self._rotate(key, positions), value, keys, values
        )
        x += self._product(mixed, "output", layer)
        h = self._normalise(x, tf.gather(self._norms["feed_forward_norm"], layer))
        gate, up = tf.split(self._product(h, "gate_up", layer), 2, axis=1)
        x += self._product((gate * up) / (1.0 + tf.exp(-gate)), "down", layer)
        return x, keys, values

    def _embed(self, ids: Tensor) -> Tensor:
        x = tf.cast(tf.gather(self._embedding.values, ids), tf.float32)
        if self._embedding.scales is not None:
            x *= tf.gather(self._embedding.scales, ids)[:, None]
        return x

    def _logits(self, x: Tensor) -> Tensor:
        return self._multiply(self._normalise(x, self._final_norm), self._head)

    def _normalise(self, x: Tensor, gain: Tensor) -> Tensor:
        mean = tf.reduce_mean(x * x, -1, keepdims=True)
        return (x * gain) / tf.maximum(tf.sqrt(mean + self.config.epsilon), _TINY)

    def _product(self, x: Tensor, name: str, layer: Tensor) -> Tensor:
        stacked = self._matrices[name]
        scales = None if stacked.scales is None else tf.gather(stacked.scales, layer)
        return self._multiply(x, _Matrix(tf.gather(stacked.values, layer), scales))

    def _multiply(self, x: Tensor, matrix: _Matrix) -> Tensor:
        if self._format == "bfloat16":  # for devices that multiply it; the sums are float32 there
            narrow = tf.cast(x, tf.bfloat16)
            return tf.cast(tf.matmul(narrow, matrix.values, transpose_b=True), tf.float32)
        weights = tf.cast(matrix.values, tf.float32)
        rows = int(x.shape[0])
        if rows <= _MAX_ROWS_APART:
            parts = [tf.matmul(x[i : i + 1], weights, transpose_b=True) for i in range(rows)]
            y = tf.concat(parts, 0)
        else:
            y = tf.matmul(x, weights, transpose_b=True)
        return y if matrix.scales is None else y * matrix.scales

    def _load_layers(self, file: GgufFile) -> None:
        """Fill the stacks layer by layer: no more than one layer is ever at full width."""
        config = self.config
        stacks: dict[str, Any] = {}
        scales: dict[str, Any] = {}
        for index, layer in enumerate(layer_weights(file, config)):
            for name in _MATRICES + _NORMS:
                values = getattr(layer, name)
                if name in _MATRICES:
                    values, scale = _narrow(values, self._format)
                    if scale is not None:
                        shape = (config.layers, *scale.shape)
                        scales.setdefault(name, np.empty(shape, np.float32))[index] = scale
                shape = (config.layers, *values.shape)
                stacks.setdefault(name, np.empty(shape, values.dtype))[index] = values
        for name in _NORMS:
            self._norms[name] = _variable(stacks.pop(name))
        for name in _MATRICES:
            scale = _variable(scales.pop(name)) if name in scales else None
            self._matrices[name] = _Matrix(_variable(stacks.pop(name)), scale)

    def _matrix(self, values: np.ndarray[Any, np.dtype[np.float32]]) -> _Matrix:
        narrow, scale = _narrow(values, self._format)
        return _Matrix(_variable(narrow), None if scale is None else _variable(scale))


def _narrow(values: Any, weights: WeightFormat) -> tuple[Any, Any]:
    """Return weights in their format, with the scale of each output where it has one."""
    if weights == "float32":
        return values, None
    if weights == "bfloat16":
        return values.astype(tf.bfloat16.as_numpy_dtype), None
    scale = np.abs(values).max(-1) / 127.0
    divisor = np.where(scale == 0, 1.0, scale)[:, None]
    return np.rint(values / divisor).astype(np.int8), scale.astype(np.float32)


def _rotations(config: LlamaConfig, rows: int) -> tuple[Any, Any]:
    pairs = np.arange(0, config.head_width, 2, dtype=np.float64)
    angles = np.arange(rows)[:, None] / config.rope_base ** (pairs / config.head_width)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _variable(values: Any) -> Tensor:
    return tf.Variable(values, trainable=False)


def _bytes(variable: Tensor) -> int:
    return int(variable.shape.num_elements()) * int(variable.dtype.size)


def _compile(function: Any, signature: list[Any]) -> Tensor:
    # A concrete function has one shape: it can never trace again.
    compiled = tf.function(function, input_signature=signature, jit_compile=True, autograph=False)
    return compiled.get_concrete_function()
