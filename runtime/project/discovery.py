"""Find a project's root, config and main file from the path that a user gave."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unicodedata import combining, normalize

from belem.runtime.project.checks import did_you_mean
from belem.runtime.project.errors import ProjectNotFound
from belem.runtime.project.wrangler import CONFIG_NAMES

__all__ = ["Found", "discover", "worker_name_from"]

_SUFFIXES = (".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs")
# Where the main file is in a folder without a config, in this order.
_STEMS = ("src/index", "src/worker", "src/main", "index", "worker", "main")
# A folder with one of these is a project of its own: configs above it are not its.
_BOUNDARIES = ("package.json", ".git")


@dataclass(frozen=True, slots=True)
class Found:
    """Where a project is. `main` is None where only the config can say it.

    `searched` are the configs that are not there and may yet appear in the project's folders.
    """

    root: Path
    config: Path | None
    main: Path | None
    searched: tuple[Path, ...]
    warnings: tuple[str, ...] = ()


def discover(path: Path) -> Found:
    """Find the project of a handler file, a folder or a config file."""
    path = path.absolute()
    if path.is_dir():
        return _discover_folder(path)
    if not path.is_file():
        raise ProjectNotFound(f"{path} is not there{_neighbour(path)}.")
    if path.name in CONFIG_NAMES or path.suffix in (".json", ".jsonc", ".toml"):
        return Found(path.parent, path, None, ())
    return _discover_file(path)


def worker_name_from(text: str) -> str:
    """Make a worker's name of a file's or folder's: lower case, the rest dashes."""
    # "é" is taken apart into "e" and an accent, which is left out.
    letters = [each for each in normalize("NFKD", text.lower()) if not combining(each)]
    kept = [letter if letter.isascii() and letter.isalnum() else "-" for letter in letters]
    words = [word for word in "".join(kept).split("-") if word]
    return "-".join(words)[:63].strip("-") or "worker"


def _discover_folder(folder: Path) -> Found:
    found = _config_in(folder)
    if found is not None:
        return found
    searched = tuple(folder / name for name in CONFIG_NAMES)
    mains = [folder / (stem + suffix) for stem in _STEMS for suffix in _SUFFIXES]
    for main in mains:
        if main.is_file():
            return Found(folder, None, main, searched)
    configs = f"{', '.join(CONFIG_NAMES[:-1])} or {CONFIG_NAMES[-1]}"
    raise ProjectNotFound(
        f"{folder} is no project: it has no {configs}, and no handler such as src/index.ts or "
        "index.js. Name the handler file, or run `belem init` there."
    )


def _discover_file(file: Path) -> Found:
    searched: list[Path] = []
    for folder in _until_boundary(file.parent):
        found = _config_in(folder)
        if found is not None:
            return Found(found.root, found.config, file, tuple(searched), found.warnings)
        searched += [folder / name for name in CONFIG_NAMES]
    root = _root_of(file)
    inside = tuple(path for path in searched if path.is_relative_to(root))
    return Found(root, None, file, inside)


def _until_boundary(folder: Path) -> Iterator[Path]:
    for candidate in (folder, *folder.parents):
        yield candidate
        if any((candidate / name).exists() for name in _BOUNDARIES):
            return


def _root_of(file: Path) -> Path:
    """Return the folder that imports of a bare file may reach: its package's, or its own."""
    for folder in _until_boundary(file.parent):
        if (folder / "package.json").is_file():
            return folder
    return file.parent


def _config_in(folder: Path) -> Found | None:
    there = [folder / name for name in CONFIG_NAMES if (folder / name).is_file()]
    if not there:
        return None
    warnings = tuple(
        f"{path.name} is ignored: {there[0].name} in the same folder comes first."
        for path in there[1:]
    )
    return Found(folder, there[0], None, (), warnings)


def _neighbour(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    return did_you_mean(path.name, names)
