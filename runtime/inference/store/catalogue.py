"""Which weights answer to a model's name: the shipped list and the user's own, merged."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from belem.runtime.inference.store.errors import CatalogueError, UnknownModel
from belem.runtime.inference.store.model_store import ModelStore
from belem.runtime.inference.store.schema import Model, Weights, read_model, read_weights

__all__ = ["Catalogue", "Entry", "user_catalogue_path"]

_MAX_FILE_BYTES: Final = 1 << 20
_SHIPPED: Final = "belem/catalogue.toml"  # as messages name it


@dataclass(frozen=True, slots=True)
class Entry:
    """What answers to a model's name here. `file` is None until the weights have been pulled."""

    name: str
    served_by: str
    task: str
    file: Path | None
    context_tokens: int
    stand_in: bool


class Catalogue:
    """The names that workers may use, and the weights behind them."""

    def __init__(
        self, weights: Mapping[str, Weights], models: Mapping[str, Model], store: ModelStore
    ) -> None:
        self._weights = dict(sorted(weights.items()))
        self._models = dict(sorted(models.items()))
        self.store = store

    @classmethod
    def load(cls, path: Path | None = None, *, store: ModelStore | None = None) -> "Catalogue":
        """Read the shipped catalogue, with the file at `path` or else the user's own over it."""
        shipped = files("belem.runtime.inference.store").joinpath("catalogue.toml").read_bytes()
        weights, models = _parse(shipped, _SHIPPED)
        own = path or user_catalogue_path()
        # A file that was asked for by name must be there; the user's own need not be.
        if path is not None or own.exists():
            more_weights, more_models = _parse(_read(own), str(own))
            weights |= more_weights
            models |= more_models
        for model in models.values():
            if model.weights not in weights:
                allowed = ", ".join(sorted(weights))
                raise CatalogueError(
                    f"{own}: [models.\"{model.name}\"]: 'weights' is '{model.weights}', "
                    f"which no [weights.…] table defines; there are {allowed}"
                )
        return cls(weights, models, store or ModelStore.default())

    def resolve(self, name: str) -> Entry:
        """Return what answers to `name`; raise UnknownModel where nothing does."""
        model = self._models.get(name)
        if model is None:
            raise UnknownModel(name)
        weights = self._weights[model.weights]
        return Entry(
            name=model.name,
            served_by=weights.name,
            task=model.task,
            file=self.store.installed(weights),
            context_tokens=weights.context_tokens,
            stand_in=model.stand_in,
        )

    def entries(self) -> list[Entry]:
        """Return every model, sorted by name."""
        return [self.resolve(name) for name in self._models]

    def weights(self, name: str) -> Weights:
        """Return the weights of that name, or those behind the model of that name."""
        if name in self._weights:
            return self._weights[name]
        model = self._models.get(name)
        if model is None:
            raise UnknownModel(name)
        return self._weights[model.weights]

    def needed(self) -> list[Weights]:
        """Return the weights that at least one model uses, each once."""
        used = {model.weights for model in self._models.values()}
        return [weights for name, weights in self._weights.items() if name in used]

    def note(self, name: str) -> str:
        """Return what the catalogue remarks about a model; empty where it says nothing."""
        return self._models[name].note


def user_catalogue_path() -> Path:
    """Return where the user's own catalogue lies, whether or not it is there."""
    home = os.environ.get("XDG_CONFIG_HOME")
    base = Path(home) if home else Path.home() / ".config"
    return base / "belem" / "catalogue.toml"


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CatalogueError(f"{path}: cannot read the catalogue: {error.strerror}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise CatalogueError(f"{path}: the catalogue is over {_MAX_FILE_BYTES} bytes")
    return content


def _parse(content: bytes, where: str) -> tuple[dict[str, Weights], dict[str, Model]]:
    try:
        tables = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{where}: not valid TOML: {error}") from error
    for key in tables:
        if key not in ("weights", "models"):
            raise CatalogueError(f"{where}: unknown key '{key}'; the tables are weights and models")
    return (
        {
            name: read_weights(name, table, where=where)
            for name, table in _section(tables, "weights", where).items()
        },
        {
            name: read_model(name, table, where=where)
            for name, table in _section(tables, "models", where).items()
        },
    )


def _section(tables: Mapping[str, object], key: str, where: str) -> dict[str, Any]:
    section = tables.get(key, {})
    if not isinstance(section, dict):
        raise CatalogueError(f"{where}: '{key}' must be a table, not {section!r}")
    return cast("dict[str, Any]", section)  # TOML's keys are strings; values are checked later
