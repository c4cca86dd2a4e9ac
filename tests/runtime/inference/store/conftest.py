from collections.abc import Generator
from pathlib import Path

import pytest

from belem.runtime.inference.store import Catalogue
from tests.runtime.inference.store.registry import Registry, catalogue_text, make_wheel, serving


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def registry(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Registry, None, None]:
    with serving(Registry(make_wheel())) as registry:
        for name, value in registry.environment(cache).items():
            monkeypatch.setenv(name, value)
        yield registry


@pytest.fixture
def catalogue_path(registry: Registry, tmp_path: Path) -> Path:
    path = tmp_path / "catalogue.toml"
    path.write_text(catalogue_text(registry.wheel))
    return path


@pytest.fixture
def catalogue(catalogue_path: Path) -> Catalogue:
    return Catalogue.load(catalogue_path)
