"""Attention over the cache [layers, slots, key heads, rows, head width], and the writes into it."""

from dataclasses import dataclass
from typing import Final

from belem.runtime.inference.tensorflow_api import Tensor, tf, xla
from belem.runtime.inference.text.llama_weights import LlamaConfig

__all__ = ["BatchAttention", "ChunkAttention"]

_MASKED: Final = -1e9


@dataclass(frozen=True, slots=True)
class ChunkAttention:
    """Attention of consecutive tokens of one slot."""

    config: LlamaConfig
    positions: Tensor
    start: Tensor
    slot: Tensor
    attended: int

    def attend(
        self, layer: Tensor, query: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        config = self.config
        tokens = query.shape[0]
        at = tf.stack([layer, self.slot, 0, self.start, 0])
        keys = _write(keys, tf.transpose(key, [1, 0, 2])[None, None], at)
        values = _write(values, tf.transpose(value, [1, 0, 2])[None, None], at)
        begin = tf.stack([layer, self.slot, 0, 0, 0])
        size = (config.kv_heads, self.attended, config.head_width)
        split = tf.reshape(query, [tokens, config.kv_heads, config.group, config.head_width])
        grouped = tf.reshape(
            tf.transpose(split, [1, 2, 0, 3]), [config.kv_heads, -1, config.head_width]
        )
        scores = tf.matmul(grouped, _read(keys, begin, size), transpose_b=True)
        scores *= config.head_width**-0.5
        mask = tf.where(tf.range(self.attended)[None] <= self.positions[:, None], 0.0, _MASKED)
        scores += tf.tile(mask, [config.group, 1])
        mixed = tf.matmul(tf.nn.softmax(scores), _read(values, begin, size))
        parts = tf.reshape(mixed, [config.kv_heads, config.group, tokens, config.head_width])
        return keys, values, tf.reshape(tf.transpose(parts, [2, 0, 1, 3]), [tokens, -1])


@dataclass(frozen=True, slots=True)
class BatchAttention:
    """Attention of one token in each of several slots."""

    config: LlamaConfig
    positions: Tensor
    slots: Tensor
    attended: int

    def attend(
        self, layer: Tensor, query: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows = range(query.shape[0])
        for row in rows:
            at = tf.stack([layer, self.slots[row], 0, self.positions[row], 0])
            keys = _write(keys, key[row][None, None, :, None], at)
            values = _write(values, value[row][None, None, :, None], at)
        mixed = [self._row(row, layer, query[row], keys, values) for row in rows]
        return keys, values, tf.concat(mixed, 0)

    def _row(self, row: int, layer: Tensor, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Mix one row's values; a product for each key head, as XLA repacks batches of them."""
        config = self.config
        group, width = config.group, config.head_width
        begin = tf.stack([layer, self.slots[row], 0, 0, 0])
        size = (config.kv_heads, self.attended, width)
        seen_keys, seen_values = _read(keys, begin, size), _read(values, begin, size)
        mask = tf.where(tf.range(self.attended) <= self.positions[row], 0.0, _MASKED)
        mixed: list[Tensor] = []
        sums: list[Tensor] = []
        for head in range(config.kv_heads):
            heads = query[head * group : (head + 1) * group]
            scores = tf.matmul(heads, seen_keys[head], transpose_b=True) * width**-0.5 + mask
            shares = tf.exp(scores - tf.reduce_max(scores, -1, keepdims=True))
            mixed.append(tf.matmul(shares, seen_values[head]))
            sums.append(tf.tile(tf.reduce_sum(shares, -1, keepdims=True), [1, width]))
        # Stacked, not concatenated: of two operands that were reshaped alike, XLA would reshape the
        # quotient instead, and the product behind it would then compute an index per element.
        shape = [1, config.heads * width]
        return tf.reshape(tf.concat(mixed, 0), shape) / tf.reshape(tf.stack(sums), shape)


def _write(cache: Tensor, update: Tensor, at: Tensor) -> Tensor:
    return xla.xla_dynamic_update_slice(cache, update, at)


def _read(cache: Tensor, begin: Tensor, size: tuple[int, int, int]) -> Tensor:
    return xla.xla_dynamic_slice(cache, begin, tf.constant([1, 1, *size]))[0, 0]
