"""Find the file that an import means, as TypeScript and bundlers do."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from belem.runtime.project.unsupported import NODE_MODULES

__all__ = ["Resolution", "SpecifierKind", "classify", "is_inside", "resolve_relative"]

# In this order, for `./x` and for `./x/index`.
_EXTENSIONS = (".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs", ".json")
# TypeScript's own advice is to import `./x.ts` as `./x.js`.
_WRITTEN_AS = {".js": (".ts", ".tsx"), ".mjs": (".mts",), ".jsx": (".tsx",)}


class SpecifierKind(Enum):
    """What kind of module a specifier names."""

    RELATIVE = "relative"
    PACKAGE = "package"
    PLATFORM = "platform"
    NODE = "node"
    ABSOLUTE = "absolute"


def classify(specifier: str) -> SpecifierKind:
    """Say what kind of module a specifier names, by its form alone."""
    if specifier in (".", "..") or specifier.startswith(("./", "../")):
        return SpecifierKind.RELATIVE
    if specifier.startswith("cloudflare:"):
        return SpecifierKind.PLATFORM
    if specifier.startswith("node:"):
        return SpecifierKind.NODE
    if specifier.startswith("/") or ":" in specifier:
        return SpecifierKind.ABSOLUTE
    return SpecifierKind.NODE if specifier.split("/")[0] in NODE_MODULES else SpecifierKind.PACKAGE


@dataclass(frozen=True, slots=True)
class Resolution:
    """The file that an import means, or None; and every path that was looked at."""

    path: Path | None
    tried: tuple[Path, ...]


def resolve_relative(directory: Path, specifier: str) -> Resolution:
    """Find the file that a relative specifier means for a module in `directory`."""
    tried: list[Path] = []
    for candidate in _candidates(directory, specifier):
        tried.append(candidate)
        if _is_file(candidate):
            return Resolution(candidate, tuple(tried))
    return Resolution(None, tuple(tried))


def is_inside(path: Path, root: Path) -> bool:
    """Say whether a file is in the project once every link on the way to it is followed."""
    return path.resolve().is_relative_to(root.resolve())


def _candidates(directory: Path, specifier: str) -> Iterator[Path]:
    # Queries (`./logo.bin?module`) choose how a bundler reads a file; the file is the same.
    exact = directory / specifier.partition("?")[0]
    names_a_folder = specifier.endswith(("/", "/.", "/..")) or specifier in (".", "..")
    if not names_a_folder:
        yield exact
        for suffix in _WRITTEN_AS.get(exact.suffix, ()):
            yield exact.with_suffix(suffix)
        if exact.name not in ("", ".."):
            for extension in _EXTENSIONS:
                yield exact.with_name(exact.name + extension)
    for extension in _EXTENSIONS:
        yield exact / f"index{extension}"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long for the disk, or with a NUL in it
        return False
