"""Read GGUF files: metadata and tensors, mapped and not copied. The file is hostile until checked.

Every count and length is compared with what is left of the file before anything of that size is
made, so that a file of a few bytes cannot ask for gigabytes.
"""

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias, TypeVar

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from belem.runtime.inference.errors import BadModelFile

__all__ = ["GgufFile", "MetadataValue", "TensorInfo"]

MetadataValue: TypeAlias = "str | int | float | bool | list[MetadataValue]"
_T = TypeVar("_T")

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_MAX_METADATA_ENTRIES: Final = 4096
_MAX_METADATA_BYTES: Final = 256 << 20  # a vocabulary of 262,144 tokens with its merges is 10 MB
_MAX_TENSORS: Final = 65_536
_MAX_DIMENSIONS: Final = 4
_MAX_KEY_BYTES: Final = 1024
_MAX_ARRAY_DEPTH: Final = 2
_MAX_ALIGNMENT: Final = 1 << 16
_STRING: Final = 8
_ARRAY: Final = 9
_SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?"} | {
    10: "Q", 11: "q", 12: "d"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies. `shape` is NumPy's: the reverse of the file's."""

    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    offset: int
    bytes: int

    @property
    def elements(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


class GgufFile:
    """An open file. Close it when its tensors have been copied out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: the file is empty
            raise BadModelFile(f"{path}: cannot read the weights: {error}") from error
        try:
            self.metadata, self.tensors = _Reader(self._map, path).read()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Unmap the file. Safe to call twice."""
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string of the metadata."""
        return self._value(key, str, default)

    def integer(self, key: str, default: int | None = None, *, least: int, most: int) -> int:
        """Return an integer of the metadata that lies within the limits."""
        value = self._value(key, int, default)
        if not least <= value <= most:
            raise BadModelFile(f"{self.path}: {key} is {value}; it must be {least} to {most}.")
        return value

    def real(self, key: str, default: float | None = None, *, least: float, most: float) -> float:
        """Return a finite number of the metadata that lies within the limits."""
        value = self._value(key, float, default)
        if not least <= value <= most:  # false for a NaN as well
            raise BadModelFile(f"{self.path}: {key} is {value}; it must be {least} to {most}.")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a boolean of the metadata."""
        return self._value(key, bool, default)

    def texts(self, key: str) -> list[str]:
        """Return an array of strings."""
        return self._array(key, str)

    def integers(self, key: str) -> list[int]:
        """Return an array of integers."""
        return self._array(key, int)

    def tensor(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return a tensor of that shape, dequantised into memory of its own."""
        info = self.tensors.get(name)
        if info is None:
            raise BadModelFile(f"{self.path}: there is no tensor {name}.")
        if info.shape != shape:
            raise BadModelFile(
                f"{self.path}: {name} has the shape {list(info.shape)}; "
                f"the metadata asks for {list(shape)}."
            )
        raw = np.frombuffer(self._map, np.uint8, info.bytes, info.offset)
        rows = raw.reshape(math.prod(shape[:-1]), -1)
        try:
            values = dequantize(rows, info.kind)
        except NotImplementedError as error:
            raise BadModelFile(
                f"{self.path}: {name} is {info.kind.name}, which is not supported."
            ) from error
        values = np.array(values, np.float32).reshape(shape)
        if not np.isfinite(values).all():
            raise BadModelFile(f"{self.path}: {name} has values that are not finite.")
        return values

    def _value(self, key: str, kind: type[_T], default: _T | None) -> _T:
        value = self.metadata.get(key, default)
        if value is None:
            raise BadModelFile(f"{self.path}: the metadata has no {key}.")
        if type(value) is not kind:
            raise BadModelFile(
                f"{self.path}: {key} is a {type(value).__name__}; it must be a {kind.__name__}."
            )
        return value

    def _array(self, key: str, kind: type[_T]) -> list[_T]:
        values = self.metadata.get(key)
        if not isinstance(values, list):
            raise BadModelFile(f"{self.path}: the metadata has no array {key}.")
        found: list[_T] = [value for value in values if type(value) is kind]
        if len(found) != len(values):
            raise BadModelFile(f"{self.path}: {key} must be an array of {kind.__name__} only.")
        return found


class _Reader:
    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data = data
        self._size = len(data)
        self._path = path
        self._at = 0

    def read(self) -> tuple[Mapping[str, MetadataValue], Mapping[str, TensorInfo]]:
        if self._take(4) != _MAGIC:
            raise self._bad("this is no GGUF file")
        version = self._scalar("I")
        if version not in _VERSIONS:
            raise self._bad(f"version {version} of GGUF is not supported")
        tensor_count = self._count("Q", _MAX_TENSORS, "tensors")
        entry_count = self._count("Q", _MAX_METADATA_ENTRIES, "metadata entries")
        metadata: dict[str, MetadataValue] = {}
        for _ in range(entry_count):
            key = self._key()
            metadata[key] = self._value(int(self._scalar("I")), 0)
            if self._at > _MAX_METADATA_BYTES:
                raise self._bad(f"the metadata is over {_MAX_METADATA_BYTES} bytes")
        alignment = metadata.get("general.alignment", 32)
        if type(alignment) is not int or not 1 <= alignment <= _MAX_ALIGNMENT:
            raise self._bad(f"an alignment of {alignment!r} is out of range")
        heads = [self._tensor_head() for _ in range(tensor_count)]
        base = -(-self._at // alignment) * alignment
        tensors = {
            name: self._tensor(name, shape, kind, base + offset)
            for name, shape, kind, offset in heads
        }
        return metadata, tensors

    def _tensor_head(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._key()
        dimensions = self._count("I", _MAX_DIMENSIONS, "dimensions")
        shape = tuple(int(self._scalar("Q")) for _ in range(dimensions))
        return name, shape[::-1], int(self._scalar("I")), int(self._scalar("Q"))

    def _tensor(self, name: str, shape: tuple[int, ...], kind: int, at: int) -> TensorInfo:
        try:
            quantisation = GGMLQuantizationType(kind)
            block, block_bytes = GGML_QUANT_SIZES[quantisation]
        except (ValueError, KeyError) as error:
            raise self._bad(f"{name} is of the unknown type {kind}") from error
        if not shape or 0 in shape or shape[-1] % block:
            raise self._bad(f"{name} cannot have the shape {list(shape)} as {quantisation.name}")
        size = math.prod(shape) // block * block_bytes
        if at + size > self._size:
            raise self._bad(f"{name} reaches beyond the end of the file, which is truncated")
        return TensorInfo(shape, quantisation, at, size)

    def _value(self, kind: int, depth: int) -> MetadataValue:
        if kind == _STRING:
            return self._string(self._size)
        if kind == _ARRAY:
            return self._array(depth + 1)
        return self._scalar(self._format(kind))

    def _array(self, depth: int) -> list[MetadataValue]:
        if depth > _MAX_ARRAY_DEPTH:
            raise self._bad("metadata arrays are nested too deeply")
        kind = int(self._scalar("I"))
        # An element takes a byte or more, so the rest of the file bounds their number.
        count = self._count("Q", self._size - self._at, "elements of an array")
        if kind in (_STRING, _ARRAY):
            return [self._value(kind, depth) for _ in range(count)]
        dtype = np.dtype("<" + self._format(kind))
        raw = self._take(count * dtype.itemsize)
        values: list[MetadataValue] = np.frombuffer(raw, dtype).tolist()
        return values

    def _format(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise self._bad(f"metadata of the unknown type {kind}")
        return _SCALARS[kind]

    def _key(self) -> str:
        return self._string(_MAX_KEY_BYTES)

    def _string(self, limit: int) -> str:
        length = self._count("Q", limit, "bytes of a string")
        return self._take(length).decode("utf-8", "replace")

    def _count(self, format_: str, limit: int, what: str) -> int:
        count = int(self._scalar(format_))
        if count > limit:
            raise self._bad(f"{count} {what} are too many; the limit is {limit}")
        return count

    def _scalar(self, format_: str) -> int | float | bool:
        raw = self._take(struct.calcsize("<" + format_))
        value: int | float | bool = struct.unpack("<" + format_, raw)[0]
        return value

    def _take(self, count: int) -> bytes:
        if count > self._size - self._at:
            raise self._bad("the file ends too early: it is truncated")
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def _bad(self, what: str) -> BadModelFile:
        return BadModelFile(f"{self._path}: {what}.")
