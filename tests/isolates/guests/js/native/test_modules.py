"""Modules: the table, how specifiers are resolved, and the main module."""

import pytest

from belem.sdk.abi import ToHost
from tests.support.js_guest import JsGuest, fault


def _main(guest: JsGuest, modules: dict[str, str], main: str = "index.js") -> object:
    """Evaluate a graph of modules; return the main module's default export."""
    for name, source in modules.items():
        assert guest.load(name, source, 1) == []
    records = guest.load(main, "", 2)
    assert records == []
    return guest.evaluate("return H.mainNamespace().default")


@pytest.mark.parametrize(
    ("importer", "specifier", "name"),
    [
        ("index.js", "./a.js", "a.js"),
        ("index.js", "./a", "a.js"),
        ("index.js", "./a", "a.mjs"),
        ("index.js", "./a", "a.ts"),
        ("index.js", "./a", "a.tsx"),
        ("index.js", "./a", "a.jsx"),
        ("index.js", "./a", "a.json"),
        ("index.js", "./a.txt", "a.txt"),
        ("index.js", "./a", "a/index.ts"),
        ("index.js", "./a/", "a/index.js"),
        ("index.js", "./a.js", "a.ts"),
        ("index.js", "./a.mjs", "a.mts"),
        ("index.js", "./a.jsx", "a.tsx"),
        ("index.js", "./a.b", "a.b.js"),
        ("src/deep/index.js", "../lib/a", "src/lib/a.ts"),
        ("src/deep/index.js", "../../a", "a.js"),
        ("src/deep/index.js", "./../.././x/../a", "a.js"),
        ("src/deep/index.js", "..", "src/index.js"),
        ("src/deep/main.js", ".", "src/deep/index.js"),
        ("src/index.js", "/a.js", "a.js"),
        ("src/index.js", "file:///a.js", "a.js"),
        ("index.js", "cloudflare:workers", "cloudflare:workers"),
        ("index.js", "./ünï😀", "ünï😀.js"),
    ],
)
def test_a_specifier_finds_its_module(
    guest: JsGuest, importer: str, specifier: str, name: str
) -> None:
    modules = {
        name: "export default import.meta.url",
        importer: f"import found from '{specifier}'; export default found",
    }

    assert _main(guest, modules, importer) == f"file:///{name}"


def test_the_exact_name_comes_first(guest: JsGuest) -> None:
    modules = {
        "a": "export default 'exact'",
        "a.js": "export default 'js'",
        "a.ts": "export default 'ts'",
        "index.js": "import a from './a'; import b from './a.js'; export default [a, b]",
    }

    assert _main(guest, modules) == ["exact", "js"]


@pytest.mark.parametrize(
    "specifier", ["./missing", "../outside", "/../x", "lodash", "a", "file:///b", "https://x/a.js"]
)
def test_a_missing_module_is_named_with_its_importer(guest: JsGuest, specifier: str) -> None:
    guest.load("a.js", "", 1)
    guest.load("index.js", f"import '{specifier}'", 1)

    problem = fault(guest.load("index.js", "", 2))

    assert problem["name"] == "ReferenceError"
    assert problem["message"] == f'No such module "{specifier}", imported from "index.js"'
    assert guest.evaluate("return H.mainNamespace()") is None


def test_a_missing_main_module_is_named(guest: JsGuest) -> None:
    assert fault(guest.load("main.js", "", 2))["message"] == 'No such module "main.js"'


def test_modules_form_a_graph_with_cycles_and_one_instance_each(guest: JsGuest) -> None:
    modules = {
        "a.js": "import { b } from './b.js'; export const a = {}; export const viaB = () => b().a",
        "b.js": "import { a } from './a.js'; export const b = () => ({ a })",
        "index.js": (
            "import { a, viaB } from './a'; import * as again from './a.js';"
            "export default [viaB() === a, again.a === a]"
        ),
    }

    assert _main(guest, modules) == [True, True]


def test_import_attributes_do_not_make_a_second_instance(guest: JsGuest) -> None:
    modules = {
        "data.json": "export default { n: 1 }",
        "index.js": (
            "import a from './data.json' with { type: 'json' }; import b from './data.json';"
            "const c = await import('./data.json', { with: { type: 'json' } });"
            "export default [a.n, a === b, c.default === a]"
        ),
    }

    assert _main(guest, modules) == [1, True, True]


def test_top_level_await_and_dynamic_import_work(guest: JsGuest) -> None:
    modules = {
        "late.js": "export const late = await Promise.resolve(7)",
        "never.js": "throw new Error('is not asked for')",
        "index.js": "const { late } = await import('./' + 'late'); export default late",
    }

    assert _main(guest, modules) == 7


def test_a_handler_can_import_later(guest: JsGuest) -> None:
    modules = {
        "late.js": "export const late = 7",
        "index.js": "export default () => import('./late')",
    }
    for name, source in modules.items():
        guest.load(name, source, 1)
    guest.load("index.js", "", 2)

    (sent,) = guest.load(
        "later.js", "H.mainNamespace().default().then((m) => H.send(50, 0, m.late))"
    )

    assert sent.json() == 7


def test_a_failing_dynamic_import_rejects(guest: JsGuest) -> None:
    modules = {
        "broken.js": "let let",
        "index.js": (
            "const failures = [];"
            "for (const name of ['./gone', './broken', './broken'])"
            "  await import(name).catch((e) => failures.push(e.name));"
            "export default failures"
        ),
    }

    assert _main(guest, modules) == ["ReferenceError", "SyntaxError", "SyntaxError"]


def test_a_throw_at_the_top_level_is_a_fault(guest: JsGuest) -> None:
    guest.load("lib.js", "export function f() { throw new RangeError('top') }", 1)
    guest.load("index.js", "import { f } from './lib.js'\n\nf()", 1)

    problem = fault(guest.load("index.js", "", 2))

    assert (problem["name"], problem["message"]) == ("RangeError", "top")
    assert "lib.js:1" in str(problem["stack"])
    assert "index.js:3" in str(problem["stack"])


@pytest.mark.parametrize("body", ["await new Promise(() => {})", "await H.op([])"])
def test_a_top_level_that_never_finishes_is_a_fault(guest: JsGuest, body: str) -> None:
    guest.load("index.js", body, 1)

    records = guest.load("index.js", "", 2)

    problem = fault([r for r in records if r.kind == ToHost.FAULT])
    assert "never finished" in str(problem["message"])
    assert guest.evaluate("return H.mainNamespace()") is None


def test_the_main_module_is_evaluated_once(guest: JsGuest) -> None:
    _main(guest, {"index.js": "globalThis.n = (globalThis.n ?? 0) + 1; export default n"})

    assert "evaluated before" in str(fault(guest.load("index.js", "", 2))["message"])
    assert guest.evaluate("return n") == 1


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [("let x = ;", 1, 9), ("\n\n  const a = 1, a = 2", 3, 18), ("const é = '😀';\n)", 2, 1)],
)
def test_a_syntax_error_says_where(guest: JsGuest, source: str, line: int, column: int) -> None:
    guest.load("src/broken.ts", source, 1)
    guest.load("index.js", "import './src/broken'", 1)

    problem = fault(guest.load("index.js", "", 2))

    assert problem["name"] == "SyntaxError"
    assert problem["file"] == "src/broken.ts"
    assert problem["line"] == line
    assert isinstance(problem["column"], int)
    if source.isascii():
        assert abs(problem["column"] - column) <= 1


def test_a_syntax_error_thrown_by_code_has_no_place_in_a_file(guest: JsGuest) -> None:
    guest.load("index.js", "JSON.parse('{')", 1)

    problem = fault(guest.load("index.js", "", 2))

    assert problem["name"] == "SyntaxError"
    assert "file" not in problem


def test_a_source_is_replaced_by_a_later_one_of_its_name(guest: JsGuest) -> None:
    guest.load("index.js", "export default 1", 1)

    assert _main(guest, {"index.js": "export default 2"}) == 2


def test_evaluated_sources_are_given_back(guest: JsGuest) -> None:
    marker = "/* a comment that only the source has */"
    _main(guest, {"index.js": f"export default 1; {marker}"})
    guest.collect()

    # The engine keeps the text of functions, for toString, and this is in none.
    assert guest.memory().count(marker.encode()) <= 1


@pytest.mark.parametrize(
    ("inbox", "name_bytes", "source_bytes", "flags"),
    [
        (b"a\0x", 0, 1, 0),
        (b"a\0x", 1, 0x7FFFFFFF, 0),
        (b"a\0x", 0x7FFFFFFF, 1, 1),
        (b"a\0x", 0xFFFFFFFF, 0xFFFFFFFF, 1),
        (b"abc", 1, 1, 0),
        (b"a\0b\0x", 3, 1, 0),
        (b"a\0x", 1, 1, 3),
    ],
)
def test_lengths_that_are_not_true_are_refused(
    guest: JsGuest, inbox: bytes, name_bytes: int, source_bytes: int, flags: int
) -> None:
    problem = fault(guest.load_raw(inbox, name_bytes, source_bytes, flags))

    assert problem["message"] == "The inbox holds no source"
    assert guest.evaluate("return 1") == 1


def test_a_source_may_hold_a_nul_and_odd_bytes(guest: JsGuest) -> None:
    assert guest.load("nul.js", b"globalThis.s = 'a\0b'") == []
    assert guest.evaluate("return s") == "a\0b"
    assert fault(guest.load("odd.js", b"globalThis.t = '\xff'; \xff"))["name"] == "SyntaxError"
