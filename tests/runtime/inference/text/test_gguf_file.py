"""GGUF files that are right, and files that were made or cut to do harm."""

import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belem.runtime.inference.errors import BadModelFile
from belem.runtime.inference.text.gguf_file import GgufFile
from tests.runtime.inference.tiny_llama import TinyLlama

UINT32, STRING, ARRAY = 4, 8, 9


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def header(tensors: int = 0, entries: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries)


def open_bytes(path: Path, content: bytes) -> GgufFile:
    path.write_bytes(content)
    return GgufFile(path)


def test_metadata_and_tensors_come_back_as_they_were_written(tiny: TinyLlama) -> None:
    with GgufFile(tiny.path) as file:
        values = file.tensor("blk.1.attn_q.weight", (48, 48))

        assert file.text("general.architecture") == "llama"
        assert file.integer("llama.block_count", least=1, most=9) == 2
        assert file.texts("tokenizer.ggml.tokens") == tiny.tokens
        np.testing.assert_array_equal(values, tiny.tensors["blk.1.attn_q.weight"])


@pytest.mark.parametrize("kind", [GGMLQuantizationType.Q4_1, GGMLQuantizationType.Q8_0])
def test_quantised_tensors_are_widened(tmp_path: Path, kind: GGMLQuantizationType) -> None:
    values = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
    raw = quantize(values, kind)
    tensor = text(b"x") + struct.pack("<IQQIQ", 2, 64, 3, int(kind), 0)
    head = header(tensors=1) + tensor
    padding = bytes(-len(head) % 32)

    with open_bytes(tmp_path / "q.gguf", head + padding + raw.tobytes()) as file:
        widened = file.tensor("x", (3, 64))

    np.testing.assert_array_equal(widened, dequantize(raw, kind))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot read the weights"),
        (b"PK\x03\x04" + bytes(40), "no GGUF file"),
        (header(version=9), "version 9"),
        (b"GGUF\x03\x00", "truncated"),
        (header(tensors=1 << 60), "tensors are too many"),
        (header(entries=1 << 40), "metadata entries are too many"),
        (header(entries=1) + struct.pack("<Q", 1 << 50), "bytes of a string are too many"),
        (header(entries=1) + text(b"k") + struct.pack("<IQ", STRING, 1 << 62), "too many"),
        (
            header(entries=1) + text(b"k") + struct.pack("<IIQ", ARRAY, UINT32, 1 << 61),
            "elements of an array are too many",
        ),
        (header(entries=1) + text(b"k") + struct.pack("<IIQ", ARRAY, UINT32, 8), "truncated"),
        (header(entries=1) + text(b"k") + struct.pack("<I", 77), "unknown type 77"),
        (
            header(entries=1)
            + text(b"k")
            + struct.pack("<I", ARRAY)
            + struct.pack("<IQ", ARRAY, 1) * 50,
            "nested too deeply",
        ),
        (
            header(entries=1) + text(b"general.alignment") + struct.pack("<II", UINT32, 0),
            "alignment of 0",
        ),
        (header(tensors=1) + text(b"x") + struct.pack("<I", 9), "dimensions are too many"),
        (
            header(tensors=1) + text(b"x") + struct.pack("<IQIQ", 1, 1 << 60, 0, 0),
            "beyond the end of the file",
        ),
        (
            header(tensors=1) + text(b"x") + struct.pack("<IQIQ", 1, 4, 0, 1 << 63),
            "beyond the end of the file",
        ),
        (header(tensors=1) + text(b"x") + struct.pack("<IQIQ", 1, 4, 999, 0), "unknown type 999"),
        (
            header(tensors=1) + text(b"x") + struct.pack("<IQIQ", 1, 33, 2, 0),
            r"cannot have the shape \[33\] as Q4_0",
        ),
        (header(tensors=1) + text(b"x") + struct.pack("<IQIQ", 1, 0, 0, 0), "cannot have"),
    ],
)
def test_a_hostile_file_is_refused_with_its_name(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(BadModelFile, match=rf"(?s)bad\.gguf.*{message}"):
        open_bytes(tmp_path / "bad.gguf", content)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModelFile, match="cannot read the weights"):
        GgufFile(tmp_path / "none.gguf")


def test_a_file_that_was_cut_anywhere_is_refused(tmp_path: Path, tiny: TinyLlama) -> None:
    content = tiny.path.read_bytes()
    path = tmp_path / "cut.gguf"

    for length in [*range(0, 400, 7), *range(400, len(content), len(content) // 50)]:
        with pytest.raises(BadModelFile):
            open_bytes(path, content[:length])


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_changed_bytes_are_refused_or_read_but_never_crash(
    tmp_path: Path, tiny: TinyLlama, data: st.DataObject
) -> None:
    content = bytearray(tiny.path.read_bytes()[:20_000])
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))

    # Anything but a BadModelFile fails the test.
    with suppress(BadModelFile), open_bytes(tmp_path / "changed.gguf", bytes(content)) as file:
        assert len(file.tensors) <= 65_536


@pytest.mark.parametrize("shape", [(48, 47), (48 * 48,)])
def test_a_tensor_of_another_shape_is_refused(tiny: TinyLlama, shape: tuple[int, ...]) -> None:
    with GgufFile(tiny.path) as file, pytest.raises(BadModelFile, match="asks for"):
        file.tensor("blk.0.attn_q.weight", shape)


def test_values_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    model = TinyLlama()
    model.tensors["output_norm.weight"][3] = np.nan

    with (
        GgufFile(model.write(tmp_path / "nan.gguf")) as file,
        pytest.raises(BadModelFile, match="not finite"),
    ):
        file.tensor("output_norm.weight", (48,))


def test_metadata_of_the_wrong_kind_is_refused(tiny: TinyLlama) -> None:
    with GgufFile(tiny.path) as file:
        with pytest.raises(BadModelFile, match=r"general\.architecture is a str"):
            file.integer("general.architecture", least=0, most=1)
        with pytest.raises(BadModelFile, match=r"no array llama\.block_count"):
            file.texts("llama.block_count")
        with pytest.raises(BadModelFile, match="array of str only"):
            file.texts("tokenizer.ggml.token_type")
        with pytest.raises(BadModelFile, match=r"has no llama\.nothing"):
            file.text("llama.nothing")
        with pytest.raises(BadModelFile, match=r"llama\.block_count is 2; it must be 5 to 9"):
            file.integer("llama.block_count", least=5, most=9)
