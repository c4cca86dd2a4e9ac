import pytest

from belem.runtime.project.errors import SourceError
from belem.runtime.project.modules import compile_module
from belem.runtime.project.transform import Transformer

WORKER = """\
// worker.ts
export interface Env {
  AI: any;
  CACHE_KV: KVNamespace;
}
enum Color { Red, Green }
import { foo, type Y } from './foo';
class A { constructor(private x: number, readonly y = 2) {} }

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { prompt } = await request.json() as { prompt: string };
    const h = `hash:${await crypto.subtle.digest('SHA-256', new TextEncoder().encode(prompt))}`;
    const pick = (a: number) => a > 1 ? h : `${a}`;
    return foo(new Response(h satisfies string)!, Color.Red);
  },
};
"""


def refusal(transformer: Transformer, name: str, source: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        compile_module(name, source.encode(), transformer)
    return caught.value


@pytest.mark.parametrize(
    ("good", "bad", "at"),
    [
        ("Red, Green", "Red Green", "Green"),
        ("as { prompt", "as as { prompt", "{ prompt: string }"),
        ("(prompt)", "(prompt", "}`;"),
        ("`hash:", "hash:", ":${"),
        ("'SHA-256'", "'SHA-256", "'SHA-256"),
        ("const h =", "const class =", "class ="),
        ("private x:", "private x", "number, readonly"),
        ("return foo", "return ??foo", "??foo"),
        ("Promise<Response>", "Promise<Response", "{\n    const {"),
        ("satisfies string", "satisfies", ")!, Color"),
        ("a > 1 ? h", "a > 1 ?? h || a ? h", "a ? h :"),
        ("=> a >", "=> >", "> 1 ?"),
        ("type Y }", "type Y ]", "]"),
    ],
)
def test_a_syntax_error_names_its_place(
    transformer: Transformer, good: str, bad: str, at: str
) -> None:
    source = WORKER.replace(good, bad, 1)
    offset = source.index(at, source.index(bad))

    error = refusal(transformer, "src/worker.ts", source)

    assert (error.file, error.line) == ("src/worker.ts", source.count("\n", 0, offset) + 1)
    assert error.column == offset - source.rfind("\n", 0, offset)
    assert str(error).startswith(f"src/worker.ts:{error.line}:{error.column}: ")


def test_the_frame_shows_the_lines_around(transformer: Transformer) -> None:
    error = refusal(transformer, "a.js", "let a = 1;\n\nlet b = );\nlet c;\nlet d;\nlet e;\n")

    assert error.reason == "Unexpected token"
    assert error.frame == (
        "  1 | let a = 1;\n  2 |\n> 3 | let b = );\n    |         ^\n  4 | let c;\n  5 | let d;"
    )


def test_a_bracket_left_open_is_named(transformer: Transformer) -> None:
    error = refusal(transformer, "a.ts", "export default {\n  fetch() {\n    return 1;\n};\n")

    assert error.reason == "Expected `,` or `}` but found `;`"
    assert error.line == 4

    error = refusal(transformer, "a.ts", "const a = {\n  f() {\n    return [1;\n")

    assert error.line == 3

    error = refusal(transformer, "a.ts", "function f() {\n  if (a) {\n    b();\n}\n")

    assert error.reason == "The file ends before the `{` of line 1, column 14 is closed"
    assert error.line == 4


@pytest.mark.parametrize("source", ["return 1;", "let s = 'a", "/* open", "let a = `b", "@", "}"])
def test_other_faults_have_a_place_too(transformer: Transformer, source: str) -> None:
    error = refusal(transformer, "a.ts", "let ok = 1;\n" + source)

    assert error.line == (1 if source == "/* open" else 2)
    assert error.column >= 1


def test_a_fault_is_found_in_a_long_file(transformer: Transformer) -> None:
    line = "export const a{0} = (x: number): string => `${{x}}` + /[/]{{1}}/.source;\n"
    source = "".join(line.format(number) for number in range(2000))
    bad = source.replace("const a1234 = ", "const a1234 = = ")

    assert refusal(transformer, "a.ts", bad).line == 1235


def test_deep_nesting_has_no_place(transformer: Transformer) -> None:
    error = refusal(transformer, "a.ts", "[" * 200_000)

    assert (error.line, error.frame) == (0, "")
    assert str(error) == "a.ts: The code is nested too deeply to parse"
