from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from belem.runtime.project import Builder
from belem.runtime.project.transform import Transformer
from belem.sdk.folders import user_cache_directory

WriteFiles = Callable[[Mapping[str, str]], Path]


@pytest.fixture(scope="session")
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that starts empty."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def transformer() -> Transformer:
    return Transformer(user_cache_directory())


@pytest.fixture
def builder() -> Builder:
    return Builder(cache_directory=user_cache_directory())


@pytest.fixture
def write(tmp_path: Path) -> WriteFiles:
    """Write files into a project's folder, and return the folder."""
    # Marks the folder as a project of its own, whatever is above the temporary folder.
    root = tmp_path / "shop"
    root.mkdir()
    (root / ".git").mkdir()

    def write_files(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    return write_files
