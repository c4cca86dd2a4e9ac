import pytest

from belem.runtime.project.imports import find_imports, rename_imports


def specifiers(source: str) -> list[str]:
    return [found.specifier for found in find_imports(source)]


@pytest.mark.parametrize(
    "source",
    [
        'import "x";',
        "import a from 'x'",
        'import * as a from "x";',
        'import a, { b, c as d, default as e, "f g" as h } from "x";',
        'import a, * as b from "x";',
        'import { from } from "x";',
        'import from from "x";',
        'import{a}from"x";',
        'import {\n  a, // from "y"\n  b,\n} from\n"x";',
        'export * from "x";',
        'export * as a from "x";',
        'export { a, b as c } from "x";',
        'export { from } from "x";',
        'const a = await import("x");',
        "import('x').then(f)",
        'import("x", { with: { type: "json" } })',
        'import a from "x" with { type: "json" };',
        'import a from "x" assert { type: "json" };',
        'f(import.meta.url); import "x"',
        'const a = `${await import("x")}`;',
        'if (a) /import "y"/.test(import("x"))',
    ],
)
def test_imports_are_found(source: str) -> None:
    assert specifiers(source) == ["x"]


@pytest.mark.parametrize(
    "source",
    [
        '// import "x"',
        '/* import a from "x" */',
        "'import \"x\"'",
        '`import "x"; ${a}`',
        '/import "x"/',
        "import.meta.url",
        "import(name)",
        'import("x" + name)',
        "import(`x`)",
        'a.import("x")',
        'a?.import("x")',
        "export { a, from }; 'x'",
        'export const from = "x";',
        'export default from; "x"',
        '({ import: "x" })',
        "import",
        "export",
        "import {",
        'import { a } of "x"',
        "",
    ],
)
def test_what_looks_like_an_import_is_none(source: str) -> None:
    assert specifiers(source) == []


def test_imports_keep_their_order() -> None:
    source = 'import "a"; export * from "b"; const c = import("c"); import d from "a";'

    assert specifiers(source) == ["a", "b", "c", "a"]


def test_new_names_take_the_place_of_the_old() -> None:
    source = "import a from './a' ; import('./b'); import c from \"c\"; // './a'"

    renamed = rename_imports(source, find_imports(source), {"./a": "./a.ts", "./b": "./b.ts"})

    assert renamed == 'import a from "./a.ts" ; import("./b.ts"); import c from "c"; // \'./a\''


def test_attributes_go_with_the_old_name() -> None:
    source = 'import a from "./a.json" with { type: "json" };\nimport("./a.json", { with: {} });'

    renamed = rename_imports(source, find_imports(source), {"./a.json": "./a.json"})

    assert renamed == 'import a from "./a.json";\nimport("./a.json");'


def test_quotes_in_a_name_are_escaped() -> None:
    source = "import './a\"b'"

    assert rename_imports(source, find_imports(source), {'./a"b': './a"b.ts'}) == (
        'import "./a\\"b.ts"'
    )
