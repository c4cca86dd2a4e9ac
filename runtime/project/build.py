"""Follow a worker's imports from its main file and make a bundle of what they reach."""

import hashlib
from pathlib import Path

from belem.runtime.project.alignment import Alignment
from belem.runtime.project.bundle import SIZE_LIMIT_BYTES, Bundle, make_bundle
from belem.runtime.project.errors import (
    BundleTooLarge,
    ModuleNotFound,
    ProjectError,
    UnsupportedModule,
)
from belem.runtime.project.esbuild import bundle_with_esbuild
from belem.runtime.project.imports import Import, find_imports, rename_imports
from belem.runtime.project.modules import compile_module, is_script
from belem.runtime.project.positions import SourceMap
from belem.runtime.project.project import Project
from belem.runtime.project.resolve import SpecifierKind, classify, is_inside, resolve_relative
from belem.runtime.project.tokens import Lines
from belem.runtime.project.transform import Transformer
from belem.sdk.folders import user_cache_directory

__all__ = ["Builder", "build_bundle"]

_PLATFORM_MODULES = frozenset({"cloudflare:workers"})
_REFUSALS = {
    SpecifierKind.NODE: "is a module of Node.js; those are not supported yet",
    SpecifierKind.PLATFORM: "is not supported yet; 'cloudflare:workers' is",
    SpecifierKind.ABSOLUTE: "cannot be imported; a module of the project ('./x') or a package can",
}


def build_bundle(project: Project) -> Bundle:
    """Build a project once. Whoever builds it again and again keeps a Builder."""
    return Builder(cache_directory=user_cache_directory()).build(project)


class Builder:
    """Builds bundles, and remembers what each file compiled to while the file stays as it is.

    `build` blocks: run it in a thread. One build at a time.
    """

    def __init__(self, *, cache_directory: Path | None) -> None:
        self._transformer = Transformer(cache_directory)
        self._compiled: dict[tuple[str, bytes], _Compiled] = {}

    def build(self, project: Project) -> Bundle:
        """Make a project's bundle. Raise ProjectError, with the files to watch for the mend."""
        walk = _Walk(project, self._transformer, self._compiled)
        try:
            bundle = walk.run()
        except ProjectError as error:
            error.watching(walk.watched | project.watched)
            raise
        self._compiled = walk.used
        return bundle


class _Compiled:
    """A file's JavaScript and imports: what depends on its content alone."""

    def __init__(self, name: str, content: bytes, transformer: Transformer) -> None:
        self.code = compile_module(name, content, transformer)
        self.imports: tuple[Import, ...] = find_imports(self.code) if is_script(name) else ()


class _NeedsBundler(Exception):
    """An import names a package."""

    def __init__(self, importer: str, specifier: str) -> None:
        super().__init__(importer, specifier)
        self.importer = importer
        self.specifier = specifier


class _Walk:
    """One build: a walk over the graph of modules, each file once, cycles and all."""

    def __init__(
        self,
        project: Project,
        transformer: Transformer,
        compiled: dict[tuple[str, bytes], _Compiled],
    ) -> None:
        self._project = project
        self._root = project.root.resolve()
        self._transformer = transformer
        self._compiled = compiled
        self._size_bytes = 0
        self._modules: dict[str, str] = {}
        self._source_maps: dict[str, SourceMap] = {}
        self.used: dict[tuple[str, bytes], _Compiled] = {}
        self.watched: set[Path] = set()

    def run(self) -> Bundle:
        main = self._project.main
        if not is_inside(main, self._root):
            raise ModuleNotFound(f"The main file {main} is outside the project {self._root}.")
        try:
            queue = [main.resolve()]
            names = {queue[0]}
            while queue:
                for found in self._add(queue.pop()):
                    if found not in names:
                        names.add(found)
                        queue.append(found)
        except _NeedsBundler as need:
            self.watched |= self._project.watched
            return bundle_with_esbuild(
                self._project, need.importer, need.specifier, frozenset(self.watched)
            )
        watched = self.watched | self._project.watched
        return make_bundle(self._name(main.resolve()), self._modules, self._source_maps, watched)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _add(self, path: Path) -> list[Path]:
        """Add a file's module; return the files that it imports."""
        name = self._name(path)
        self.watched.add(path)
        content = self._read(path, name)
        compiled = self._compile(name, content)
        renames: dict[str, str] = {}
        reached: list[Path] = []
        for found in compiled.imports:
            target = self._resolve(path, name, content, found)
            if target is not None:
                reached.append(target)
                renames[found.specifier] = _relative(name, self._name(target))
        code = rename_imports(compiled.code, compiled.imports, renames)
        self._modules[name] = code
        if is_script(name):
            original = content.decode("utf-8-sig")
            if code != original:
                self._source_maps[name] = Alignment(name, original, code)
        return reached

    def _read(self, path: Path, name: str) -> bytes:
        try:
            size_bytes = path.stat().st_size
            self._size_bytes += size_bytes
            if self._size_bytes > SIZE_LIMIT_BYTES:
                raise BundleTooLarge(
                    f"{name} brings the worker to {self._size_bytes} bytes; "
                    f"the limit is {SIZE_LIMIT_BYTES} bytes."
                )
            return path.read_bytes()
        except OSError as error:
            raise ModuleNotFound(f"{name} cannot be read: {error.strerror}.") from error

    def _compile(self, name: str, content: bytes) -> _Compiled:
        key = name, hashlib.sha256(content).digest()
        compiled = self._compiled.get(key) or _Compiled(name, content, self._transformer)
        self.used[key] = compiled
        return compiled

    def _resolve(self, path: Path, name: str, content: bytes, found: Import) -> Path | None:
        """Return the file that an import means, or None for a module of the platform."""
        specifier, kind = found.specifier, classify(found.specifier)
        if kind is not SpecifierKind.RELATIVE:
            if kind is SpecifierKind.PLATFORM and specifier in _PLATFORM_MODULES:
                return None
            where = _where(name, content, specifier)
            if kind is SpecifierKind.PACKAGE:
                raise _NeedsBundler(where, specifier)
            raise UnsupportedModule(f"{where}: '{specifier}' {_REFUSALS[kind]}.")
        resolution = resolve_relative(path.parent, specifier)
        if resolution.path is None:
            self.watched.update(resolution.tried)
            looked = ", ".join(candidate.name for candidate in resolution.tried[:4])
            where = _where(name, content, specifier)
            raise ModuleNotFound(f"{where}: '{specifier}' is not there; looked for {looked}, ….")
        target = resolution.path.resolve()
        if not target.is_relative_to(self._root):
            where = _where(name, content, specifier)
            outside = f"is {target}, outside the project {self._root}"
            raise ModuleNotFound(f"{where}: '{specifier}' {outside}.")
        return target


def _where(name: str, content: bytes, specifier: str) -> str:
    """Return the module and line of an import, in the source as the user wrote it."""
    text = content.decode("utf-8-sig", errors="replace")
    for found in find_imports(text):
        if found.specifier == specifier:
            return f"{name}:{Lines(text).at(found.start)[0]}"
    return name


def _relative(importer: str, target: str) -> str:
    """Return the exact name of a module as seen from another: `./x.ts`, `../lib/y.ts`."""
    here, there = importer.split("/")[:-1], target.split("/")
    common = 0
    while common < min(len(here), len(there) - 1) and here[common] == there[common]:
        common += 1
    up = "../" * (len(here) - common) or "./"
    return up + "/".join(there[common:])
