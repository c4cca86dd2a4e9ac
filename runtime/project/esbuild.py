"""Bundle a worker that imports npm packages, with the project's own esbuild.

esbuild resolves packages as Cloudflare's tools do: the same conditions, main fields and loaders. It
is run once for each build, as a process with a time limit.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from belem.runtime.project.bundle import Bundle, make_bundle
from belem.runtime.project.errors import (
    BundlerError,
    ModuleNotFound,
    ProjectError,
    SourceError,
    UnsupportedModule,
)
from belem.runtime.project.positions import code_frame
from belem.runtime.project.project import Project
from belem.runtime.project.sourcemap import EncodedMap

__all__ = ["bundle_with_esbuild"]

_TIMEOUT_SECONDS = 60
_MODULE = "bundle.js"
_OPTIONS = (
    "--bundle",
    "--format=esm",
    "--platform=neutral",
    "--target=es2024",
    "--main-fields=browser,module,main",
    "--conditions=workerd,worker,browser,module",
    '--define:process.env.NODE_ENV="production"',
    '--define:navigator.userAgent="Cloudflare-Workers"',
    "--loader:.js=jsx",
    "--loader:.mjs=jsx",
    "--loader:.cjs=jsx",
    "--loader:.txt=text",
    "--loader:.html=text",
    "--loader:.sql=text",
    "--external:cloudflare:*",
    "--external:node:*",
    "--sourcemap=external",
    "--keep-names",
    "--color=false",
    "--log-level=error",
    "--log-limit=1",
)
_ERROR = re.compile(r"\[ERROR\] (?P<reason>[^\n]+)")
_PLACE = re.compile(r"^ {4}(?P<file>\S[^\n]*?):(?P<line>\d+):(?P<column>\d+):$", re.MULTILINE)


def bundle_with_esbuild(
    project: Project, importer: str, specifier: str, watched: frozenset[Path]
) -> Bundle:
    """Return the bundle of a project whose `importer` imports the package `specifier`."""
    executable = _find_esbuild(project.root, importer, specifier)
    with tempfile.TemporaryDirectory(prefix="belem-esbuild-") as folder:
        # Without links in its path, so that the paths in the map lead back from it to the sources.
        output = Path(folder).resolve()
        meta = output / "meta.json"
        _run(
            [
                str(executable),
                str(project.main),
                f"--outfile={output / _MODULE}",
                f"--metafile={meta}",
                *_OPTIONS,
            ],
            project.root,
        )
        inputs = _inputs(meta)
        _refuse_node_modules(inputs)
        code = (output / _MODULE).read_text(encoding="utf-8")
        source_map = (output / (_MODULE + ".map")).read_text(encoding="utf-8")
    root = project.root.resolve()
    files = {root / name for name in inputs if "node_modules" not in name.split("/")}
    files |= {root / "package.json", root / "tsconfig.json"}
    maps = {_MODULE: EncodedMap(source_map, output, root)}
    return make_bundle(_MODULE, {_MODULE: code}, maps, files | watched)


def _find_esbuild(root: Path, importer: str, specifier: str) -> Path:
    folders = [folder / "node_modules" for folder in (root, *root.parents)]
    present = [folder for folder in folders if folder.is_dir()]
    if not present:
        raise ModuleNotFound(
            f"{importer}: the package '{specifier}' is not installed: {root} has no node_modules. "
            "Run `npm install` there, or import a file of the project ('./x')."
        )
    for folder in present:
        for place in (".bin/esbuild", "wrangler/node_modules/.bin/esbuild"):
            if (folder / place).is_file():
                return folder / place
    found = shutil.which("esbuild")
    if found is None:
        error = BundlerError(
            f"{importer} imports the package '{specifier}', and packages are bundled with esbuild, "
            f"which is neither in {present[0] / '.bin'} nor on the PATH. "
            "Run `npm install --save-dev esbuild`."
        )
        error.watching(folder / ".bin" / "esbuild" for folder in present)  # that mends it
        raise error
    return Path(found)


def _run(command: list[str], root: Path) -> None:
    try:
        # A session of its own: npm's esbuild is a script that starts the real one, and both must
        # end.
        process = subprocess.Popen(
            command,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise BundlerError(f"{command[0]} cannot be run: {error.strerror}.") from error
    try:
        errors = process.communicate(timeout=_TIMEOUT_SECONDS)[1].decode(errors="replace")
    except subprocess.TimeoutExpired:
        raise BundlerError(
            f"{command[0]} ran for more than {_TIMEOUT_SECONDS} s, the limit, and was stopped."
        ) from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        raise _failure(errors, process.returncode, root)


def _failure(output: str, status: int, root: Path) -> ProjectError:
    """Turn what esbuild prints into the error that names the place in the user's file."""
    error, place = _ERROR.search(output), _PLACE.search(output)
    if error is None:
        detail = output.strip().splitlines()
        return BundlerError(f"esbuild failed with status {status}: {detail[-1] if detail else ''}")
    if place is None:
        return BundlerError(f"esbuild: {error['reason']}")
    # Its columns count from 0.
    line, column = int(place["line"]), int(place["column"]) + 1
    try:
        text = (root / place["file"]).read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = ""
    frame = code_frame(text, line, column) if text else ""
    found: ProjectError = SourceError(
        error["reason"], file=place["file"], line=line, column=column, frame=frame
    )
    found.watching([root / place["file"], root / "package.json"])
    return found


def _inputs(meta: Path) -> dict[str, list[dict[str, object]]]:
    """Read esbuild's metafile: each file that went in, and what it imports."""
    content = cast("dict[str, object]", json.loads(meta.read_text(encoding="utf-8")))
    inputs = cast("dict[str, dict[str, list[dict[str, object]]]]", content["inputs"])
    return {name: entry["imports"] for name, entry in inputs.items()}


def _refuse_node_modules(inputs: dict[str, list[dict[str, object]]]) -> None:
    for importer, specifier in _externals(inputs):
        if specifier.startswith("node:"):
            raise UnsupportedModule(
                f"{importer}: '{specifier}' is a module of Node.js; those are not supported yet."
            )
        if specifier.startswith("cloudflare:") and specifier != "cloudflare:workers":
            raise UnsupportedModule(f"{importer}: '{specifier}' is not supported yet.")


def _externals(inputs: dict[str, list[dict[str, object]]]) -> Iterator[tuple[str, str]]:
    for importer, imports in inputs.items():
        for entry in imports:
            # What is imported only when some code runs may never be.
            if entry.get("external") is True and entry.get("kind") == "import-statement":
                yield importer, str(entry.get("path"))
