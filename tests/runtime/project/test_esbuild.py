import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from belem.runtime.project import (
    Builder,
    BundlerError,
    SourceError,
    UnsupportedModule,
    esbuild,
    load_project,
    map_stack,
)
from tests.runtime.project.conftest import WriteFiles
from tests.support.npm import npm_folder

# What esbuild does, as far as it is looked at: it reads its arguments and writes three files.
FAKE = """\
#!{python}
import json, pathlib, sys
arguments = dict(a.lstrip("-").split("=", 1) for a in sys.argv[2:] if "=" in a)
pathlib.Path("arguments.json").write_text(json.dumps(sys.argv[1:]))
reply = json.loads({reply!r})
if "errors" in reply:
    sys.stderr.write(reply["errors"])
    sys.exit(reply["status"])
out = pathlib.Path(arguments["outfile"])
out.write_text(reply["code"])
sources = [str(pathlib.Path.cwd() / s) for s in reply["sources"]]
up = "../" * (len(out.parts) - 2)
content = {{"sources": [up + s.lstrip("/") for s in sources], "mappings": reply["mappings"]}}
pathlib.Path(str(out) + ".map").write_text(json.dumps(content))
pathlib.Path(arguments["metafile"]).write_text(json.dumps({{"inputs": reply["inputs"]}}))
"""
IMPORTER = 'import { Hono } from "hono";\nexport default new Hono();\n'


def install(root: Path, **reply: object) -> None:
    path = root / "node_modules/.bin/esbuild"
    path.parent.mkdir(parents=True)
    whole: dict[str, object] = {
        "code": "0;\n",
        "sources": [],
        "mappings": "",
        "inputs": {},
        "status": 1,
        **reply,
    }
    path.write_text(FAKE.format(python=sys.executable, reply=json.dumps(whole)))
    path.chmod(0o755)


def imports(path: str, kind: str = "import-statement", **fields: object) -> dict[str, object]:
    return {"imports": [{"path": path, "kind": kind, **fields}]}


def test_packages_are_bundled(builder: Builder, write: WriteFiles) -> None:
    root = write({"src/index.ts": IMPORTER, "package.json": "{}"})
    nothing: dict[str, list[object]] = {"imports": []}
    inputs = {"src/index.ts": nothing, "node_modules/hono/index.js": nothing}
    install(
        root,
        code="throw new Error();\n",
        sources=["src/index.ts"],
        mappings="AACA,MAAM",
        inputs=inputs,
    )

    bundle = builder.build(load_project(root / "src/index.ts"))

    assert dict(bundle.modules) == {bundle.main: "throw new Error();\n"}
    assert {root / "src/index.ts", root / "package.json"} <= bundle.watched
    assert not any("node_modules" in path.parts for path in bundle.watched)
    assert map_stack(bundle, f"    at f ({bundle.main}:1:7)") == "    at f (src/index.ts:2:7)"


def test_packages_are_resolved_as_on_workers(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": IMPORTER})
    install(root)

    builder.build(load_project(root / "index.ts"))

    arguments = json.loads((root / "arguments.json").read_text())
    assert arguments[0] == str(root / "index.ts")
    assert "--conditions=workerd,worker,browser,module" in arguments
    assert "--external:cloudflare:*" in arguments


def test_an_error_of_the_bundler_names_its_place(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": IMPORTER})
    errors = """\
✘ [ERROR] Could not resolve "hono"

    index.ts:1:21:
      1 │ import { Hono } from "hono";
        ╵                      ~~~~~~

  You can mark the path "hono" as external.

"""
    install(root, errors=errors)

    with pytest.raises(SourceError) as caught:
        builder.build(load_project(root / "index.ts"))

    error = caught.value
    assert (error.file, error.line, error.column) == ("index.ts", 1, 22)
    assert error.reason == 'Could not resolve "hono"'
    assert '> 1 | import { Hono } from "hono";' in error.frame
    assert root / "package.json" in error.watched


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ("✘ [ERROR] Invalid option\n", "esbuild: Invalid option"),
        ("node: not found\n", "esbuild failed with status 1: node: not found"),
        ("", "esbuild failed with status 1: "),
    ],
)
def test_other_failures_are_told(
    builder: Builder, write: WriteFiles, errors: str, message: str
) -> None:
    root = write({"index.ts": IMPORTER})
    install(root, errors=errors)

    with pytest.raises(BundlerError) as caught:
        builder.build(load_project(root / "index.ts"))

    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["node:fs", "cloudflare:sockets"])
def test_a_package_that_needs_more_than_there_is_names_it(
    builder: Builder, write: WriteFiles, name: str
) -> None:
    root = write({"index.ts": IMPORTER})
    install(root, inputs={"node_modules/x/a.js": imports(name, external=True)})

    with pytest.raises(UnsupportedModule, match=f"node_modules/x/a.js: '{name}' is"):
        builder.build(load_project(root / "index.ts"))


def test_what_may_never_be_imported_is_left(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": IMPORTER})
    install(
        root,
        inputs={
            "a.js": imports("node:fs", kind="dynamic-import", external=True),
            "b.js": imports("cloudflare:workers", external=True),
            "c.js": imports("node_modules/y.js"),
        },
    )

    assert builder.build(load_project(root / "index.ts")).main


def test_a_missing_bundler_says_how_to_get_it(
    builder: Builder, write: WriteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write({"index.ts": IMPORTER, "node_modules/.keep": ""})
    monkeypatch.setenv("PATH", "")

    with pytest.raises(BundlerError) as caught:
        builder.build(load_project(root / "index.ts"))

    assert str(caught.value).startswith("index.ts:1 imports the package 'hono', and packages are")
    assert "npm install --save-dev esbuild" in str(caught.value)


def test_a_bundler_on_the_path_is_used(
    builder: Builder, write: WriteFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = write({"index.ts": IMPORTER, "node_modules/.keep": ""})
    install(tmp_path / "elsewhere", code="1;\n")
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere/node_modules/.bin"))

    bundle = builder.build(load_project(root / "index.ts"))

    assert bundle.modules[bundle.main] == "1;\n"


def test_a_bundler_that_hangs_is_stopped(
    builder: Builder, write: WriteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write({"index.ts": IMPORTER})
    install(root)
    script = root / "node_modules/.bin/esbuild"
    # It starts another process, as npm's script does; both must be gone for the pipe to close.
    script.write_text("#!/bin/sh\nsleep 600 &\nwait\n")
    monkeypatch.setattr(esbuild, "_TIMEOUT_SECONDS", 0.2)

    with pytest.raises(BundlerError, match=r"ran for more than 0\.2 s, the limit, and was stopped"):
        builder.build(load_project(root / "index.ts"))


def test_a_bundler_that_cannot_be_run_is_told(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": IMPORTER})
    install(root)
    (root / "node_modules/.bin/esbuild").chmod(0o644)

    with pytest.raises(BundlerError, match="cannot be run: Permission denied"):
        builder.build(load_project(root / "index.ts"))


def test_a_missing_bundler_is_waited_for(
    builder: Builder, write: WriteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write({"index.ts": IMPORTER, "node_modules/pack/package.json": "{}"})
    monkeypatch.setenv("PATH", "")

    with pytest.raises(BundlerError, match="npm install --save-dev esbuild") as caught:
        builder.build(load_project(root / "index.ts"))

    assert root / "node_modules/.bin/esbuild" in caught.value.watched


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm to install esbuild with")
def test_the_real_bundler_bundles(
    builder: Builder, write: WriteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries = npm_folder("esbuild", "0.28.2") / "node_modules" / ".bin"
    monkeypatch.setenv("PATH", f"{binaries}{os.pathsep}{os.environ['PATH']}")
    root = write(
        {
            "src/index.ts": 'import { boom } from "pack";\n\nboom("é" as string);\n',
            "package.json": "{}",
            "node_modules/pack/package.json": '{"exports": {"workerd": "./w.js"}}',
            "node_modules/pack/w.js": "export function boom(a) {\n\n  throw new Error(a);\n}\n",
        }
    )

    bundle = builder.build(load_project(root / "src/index.ts"))

    lines = bundle.modules[bundle.main].split("\n")
    line = next(n for n, text in enumerate(lines, start=1) if "throw new" in text)
    column = lines[line - 1].index("throw") + 1
    mapped = map_stack(bundle, f"    at boom ({bundle.main}:{line}:{column})")
    assert mapped == "    at boom (node_modules/pack/w.js:3:3)"
