from pathlib import Path

import pytest

from belem.runtime.project import (
    Builder,
    Bundle,
    BundleTooLarge,
    ModuleNotFound,
    ProjectError,
    SourceError,
    UnsupportedModule,
    load_project,
)
from tests.runtime.project.conftest import WriteFiles


def build(builder: Builder, root: Path, main: str = "index.ts") -> Bundle:
    return builder.build(load_project(root / main))


def refusal(builder: Builder, root: Path, kind: type[ProjectError]) -> ProjectError:
    with pytest.raises(kind) as caught:
        build(builder, root)
    return caught.value


def test_modules_are_named_by_their_paths(builder: Builder, write: WriteFiles) -> None:
    root = write(
        {
            "package.json": "{}",
            "src/index.ts": 'import { a } from "./lib/a"; export default a;',
            "src/lib/a.ts": 'export * from "../../b.js"; export const a = 1;',
            "b.js": "export const b = 2;",
        }
    )

    bundle = build(builder, root, "src/index.ts")

    assert bundle.main == "src/index.ts"
    assert bundle.modules == {
        "src/index.ts": 'import { a } from "./lib/a.ts";\nexport default a;\n',
        "src/lib/a.ts": 'export * from "../../b.js";\nexport const a = 1;\n',
        "b.js": "export const b = 2;",
    }
    assert bundle.size_bytes == sum(len(code.encode()) for code in bundle.modules.values())


@pytest.mark.parametrize(
    ("specifier", "file"),
    [
        ("./x", "x.ts"),
        ("./x", "x.tsx"),
        ("./x", "x.js"),
        ("./x", "x.mjs"),
        ("./x", "x/index.ts"),
        ("./x/", "x/index.js"),
        ("./x.js", "x.ts"),
        ("./x.js", "x.tsx"),
        ("./x.js", "x.js"),
        ("./x.mjs", "x.mts"),
        ("./x.ts", "x.ts"),
        ("./x.y", "x.y.ts"),
        ("./d/../x", "x.ts"),
    ],
)
def test_imports_mean_what_typescript_means(
    builder: Builder, write: WriteFiles, specifier: str, file: str
) -> None:
    root = write({"index.ts": f'import "{specifier}";', file: "export {};", "d/.keep": ""})

    bundle = build(builder, root)

    assert set(bundle.modules) == {"index.ts", file}
    assert bundle.modules["index.ts"] == f'import "./{file}";\n'


def test_a_written_javascript_file_wins_over_its_typescript(
    builder: Builder, write: WriteFiles
) -> None:
    root = write({"index.ts": 'import "./x.js";', "x.js": "0;", "x.ts": "1;"})

    assert set(build(builder, root).modules) == {"index.ts", "x.js"}


def test_a_folder_imports_its_own_index(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "./a/b";', "a/b.ts": 'import "."; import "..";'})
    write({"a/index.ts": "0;"})

    assert set(build(builder, root).modules) == {"index.ts", "a/b.ts", "a/index.ts"}


def test_cycles_end(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "./a";', "a.ts": 'import "./index"; import "./a";'})

    assert set(build(builder, root).modules) == {"index.ts", "a.ts"}


def test_dynamic_imports_are_followed(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'export const a = () => import("./a");', "a.ts": "0;"})

    assert build(builder, root).modules["index.ts"] == 'export const a = () => import("./a.ts");\n'


def test_imports_of_types_are_not_followed(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import type { A } from "hono"; import { B } from "./b"; let a: A|B'})

    assert set(build(builder, root).modules) == {"index.ts"}


def test_data_becomes_modules(builder: Builder, write: WriteFiles) -> None:
    root = write(
        {
            "index.js": 'import "./a.json" with { type: "json" }; import "./b.txt";'
            'import "./c.html"; import "./d.sql"; import "./e.bin";',
            "a.json": '{"__proto__": "\u2028"}',
            "b.txt": 'say "hi"\n',
            "c.html": "<p>",
            "d.sql": "select 1",
        }
    )
    (root / "e.bin").write_bytes(b"\x00\xff")

    modules = build(builder, root, "index.js").modules

    assert modules["index.js"].startswith('import "./a.json"; import')
    assert modules["a.json"] == ('export default JSON.parse("{\\"__proto__\\": \\"\\u2028\\"}");\n')
    assert modules["b.txt"] == 'export default "say \\"hi\\"\\n";\n'
    assert modules["c.html"] == 'export default "<p>";\n'
    assert modules["d.sql"] == 'export default "select 1";\n'
    assert modules["e.bin"] == 'export default Uint8Array.fromBase64("AP8=").buffer;\n'


def test_the_platforms_modules_stay_outside(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import { env } from "cloudflare:workers"; export default env;'})

    bundle = build(builder, root)

    assert 'from "cloudflare:workers"' in bundle.modules["index.ts"]


@pytest.mark.parametrize(
    ("specifier", "reason"),
    [
        ("node:fs", "is a module of Node.js; those are not supported yet"),
        ("fs/promises", "is a module of Node.js"),
        ("cloudflare:sockets", "is not supported yet; 'cloudflare:workers' is"),
        ("https://esm.sh/x", "cannot be imported"),
        ("/etc/passwd", "cannot be imported"),
    ],
)
def test_other_kinds_of_modules_are_refused(
    builder: Builder, write: WriteFiles, specifier: str, reason: str
) -> None:
    root = write({"index.ts": f'// one\ninterface Two {{}}\nimport "{specifier}";'})

    error = refusal(builder, root, UnsupportedModule)

    assert str(error).startswith(f"index.ts:3: '{specifier}' {reason}")


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("x.wasm", "WebAssembly modules are not supported yet"),
        ("x.css", "style sheets are not supported"),
        ("x.cjs", "CommonJS modules are not supported yet"),
        ("x.py", "Python workers are not supported yet"),
        ("x.png", "modules are .ts .tsx"),
    ],
)
def test_other_kinds_of_files_are_refused(
    builder: Builder, write: WriteFiles, file: str, reason: str
) -> None:
    root = write({"index.ts": f'import "./{file}";', file: ""})

    assert str(refusal(builder, root, UnsupportedModule)).startswith(f"{file}: {reason}")


def test_a_missing_module_names_importer_and_line(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'type A = 1;\n\nimport { b } from "./b";\nexport default b;'})

    error = refusal(builder, root, ModuleNotFound)

    assert str(error).startswith("index.ts:3: './b' is not there; looked for b, b.ts, b.tsx")
    assert {root / "index.ts", root / "b.ts", root / "b/index.ts"} <= error.watched


def test_files_outside_the_project_are_refused(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "../secret";', "../secret.ts": "0;"})

    assert "outside the project" in str(refusal(builder, root, ModuleNotFound))


@pytest.mark.parametrize("link_is_folder", [True, False])
def test_links_out_of_the_project_are_refused(
    builder: Builder, write: WriteFiles, tmp_path: Path, link_is_folder: bool
) -> None:
    root = write(
        {"index.ts": 'import "./in/secret.json";', "in/.keep": "", "../out/secret.json": "1"}
    )
    (root / "in/.keep").unlink()
    if link_is_folder:
        (root / "in").rmdir()
        (root / "in").symlink_to(tmp_path / "out")
    else:
        (root / "in/secret.json").symlink_to(tmp_path / "out/secret.json")

    assert "outside the project" in str(refusal(builder, root, ModuleNotFound))


def test_a_main_outside_the_project_is_refused(builder: Builder, write: WriteFiles) -> None:
    root = write({"wrangler.json": '{"main": "../main.ts"}', "../main.ts": "0;"})

    with pytest.raises(ModuleNotFound, match="outside the project"):
        builder.build(load_project(root))


def test_a_file_reached_by_two_ways_is_one_module(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "./a"; import "./link";', "a.ts": "0;"})
    (root / "link.ts").symlink_to("a.ts")

    assert build(builder, root).modules["index.ts"] == 'import "./a.ts";\nimport "./a.ts";\n'


def test_a_syntax_error_names_its_place_and_what_to_watch(
    builder: Builder, write: WriteFiles
) -> None:
    root = write({"index.ts": 'import "./a";', "a.ts": "let a: = 1;"})

    error = refusal(builder, root, SourceError)

    assert isinstance(error, SourceError)
    assert (error.file, error.line, error.column) == ("a.ts", 1, 8)
    assert error.watched >= {root / "index.ts", root / "a.ts"}


def test_plain_javascript_is_checked_too(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "./a.js";', "a.js": "\nlet a: number = 1;"})

    assert "a.js:2:6: " in str(refusal(builder, root, SourceError))


def test_broken_json_is_a_syntax_error(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "./a.json";', "a.json": '{\n  "a": 1,\n}'})

    assert str(refusal(builder, root, SourceError)).startswith("a.json:")


def test_a_source_that_is_not_utf8_is_refused(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": ""})
    (root / "index.ts").write_bytes(b"let a = 1;\nlet b = '\xff'")

    assert str(refusal(builder, root, SourceError)) == (
        "index.ts:2:10: The file is not UTF-8: byte 0xff starts no character"
    )


def test_a_byte_order_mark_is_left_out(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.js": "\ufefflet a = 1"})

    assert build(builder, root, "index.js").modules["index.js"] == "let a = 1"


def test_a_worker_over_the_limit_is_refused(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "./big.txt";'})
    with (root / "big.txt").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)

    error = refusal(builder, root, BundleTooLarge)

    assert "big.txt brings the worker to" in str(error)
    assert "the limit is 67108864 bytes" in str(error)


def test_all_files_are_watched(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "./a.txt";', "a.txt": ""})

    watched = build(builder, root).watched

    assert {root / "index.ts", root / "a.txt", root / ".dev.vars"} <= watched


def test_the_digest_names_the_content(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "./a";', "a.ts": "1;"})
    first, again = build(builder, root), build(builder, root)
    write({"a.ts": "2;"})
    changed = build(builder, root)

    assert first.sha256 == again.sha256 != changed.sha256
    assert changed.modules["a.ts"] == "2;\n"


def test_only_changed_files_are_compiled_again(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": 'import "./a"; import "./b";', "a.ts": "1;", "b.ts": "1;"})
    first = build(builder, root)
    write({"b.ts": "2;"})

    second = build(builder, root)

    # The same string object: nothing made it anew.
    assert second.modules["a.ts"] is first.modules["a.ts"]
    assert second.modules["b.ts"] == "2;\n"


def test_packages_need_node_modules(builder: Builder, write: WriteFiles) -> None:
    root = write({"index.ts": '\nimport { Hono } from "hono"; export default new Hono();'})

    error = refusal(builder, root, ModuleNotFound)

    assert str(error).startswith("index.ts:2: the package 'hono' is not installed")
    assert "npm install" in str(error)
