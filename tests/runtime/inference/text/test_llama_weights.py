"""Models whose metadata asks for something that the graph does not compute."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belem.runtime.inference.errors import BadModelFile
from belem.runtime.inference.text.gguf_file import GgufFile
from belem.runtime.inference.text.llama_weights import layer_weights, read_config, unpermute
from tests.runtime.inference.tiny_llama import TinyLlama


def test_the_configuration_is_what_the_metadata_says(tiny: TinyLlama) -> None:
    with GgufFile(tiny.path) as file:
        config = read_config(file)

    assert (config.layers, config.width, config.heads, config.kv_heads) == (2, 48, 6, 2)
    assert (config.head_width, config.group, config.vocabulary) == (8, 3, len(tiny.tokens))
    assert config.rope_base == 10_000.0


def test_parameters_count_every_matrix(tiny: TinyLlama) -> None:
    with GgufFile(tiny.path) as file:
        config = read_config(file)

    matrices = [tensor for tensor in tiny.tensors.values() if tensor.ndim == 2]
    assert config.parameters == sum(matrix.size for matrix in matrices)


def test_layers_are_read_one_after_the_other(tiny: TinyLlama) -> None:
    with GgufFile(tiny.path) as file:
        layers = list(layer_weights(file, read_config(file)))

    assert len(layers) == 2
    assert layers[0].qkv.shape == (48 + 2 * 16, 48)
    np.testing.assert_array_equal(layers[1].qkv[-16:], tiny.tensors["blk.1.attn_v.weight"])


def test_unpermuting_brings_the_halves_of_each_head_together() -> None:
    rows = np.arange(8, dtype=np.float32)[:, None]  # two heads of four: pairs (0, 1), (2, 3)

    assert unpermute(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"llama.block_count": 100_000}, r"block_count is 100000; it must be 1 to 512"),
        ({"llama.block_count": 0}, "block_count is 0"),
        ({"llama.attention.head_count": 4_000_000_000}, "head_count is 4000000000"),
        ({"llama.attention.head_count_kv": 4}, "6 heads cannot share 4 key heads"),
        ({"llama.attention.key_length": 7}, "a head of 7 values has no halves"),
        ({"llama.rope.freq_base": float("nan")}, "freq_base is nan"),
        ({"llama.rope.freq_base": 0.0}, "freq_base is 0.0"),
        ({"llama.rope.dimension_count": 4}, "rotating 4 of 8 values is not supported"),
        ({"llama.rope.scaling.type": "yarn"}, r"rope\.scaling\.type = 'yarn' is not supported"),
        ({"llama.expert_count": 8}, "expert_count = 8 is not supported"),
        ({"llama.attention.layer_norm_rms_epsilon": None}, "has no llama.attention.layer_norm"),
        ({"llama.embedding_length": "48"}, "embedding_length is a str; it must be a int"),
    ],
)
def test_what_cannot_be_computed_is_refused(
    tmp_path: Path, metadata: dict[str, Any], message: str
) -> None:
    path = TinyLlama(metadata=metadata).write(tmp_path / "odd.gguf")

    with GgufFile(path) as file, pytest.raises(BadModelFile, match=message):
        read_config(file)


def test_another_architecture_is_refused(tmp_path: Path, tiny: TinyLlama) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(tiny.path.read_bytes().replace(b"llama", b"mamba", 2))

    with GgufFile(path) as file, pytest.raises(BadModelFile, match="'mamba' is not supported"):
        read_config(file)


def test_metadata_that_the_tensors_contradict_is_refused(tmp_path: Path) -> None:
    path = TinyLlama(metadata={"llama.feed_forward_length": 65}).write(tmp_path / "lie.gguf")

    with GgufFile(path) as file, pytest.raises(BadModelFile, match=r"ffn_gate.*asks for \[65, 48"):
        list(layer_weights(file, read_config(file)))
