import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.runtime.project.declarations import read_env

PIECES = st.sampled_from(
    [
        "interface ",
        "Env",
        "type ",
        "{",
        "}",
        "<",
        ">",
        ";",
        ":",
        "KVNamespace",
        "=",
        "&",
        "extends ",
        "import",
        "(",
        ")",
        ".",
        "?",
        "|",
        "readonly ",
        "env",
        '"a"',
        "\n",
        ",",
        "ExportedHandler",
    ]
)


def members(source: str) -> dict[str, str]:
    return {member.name: member.type for member in read_env(source)}


@pytest.mark.parametrize(
    "source",
    [
        "interface Env { A: KVNamespace }",
        "export interface Env {\n  A: KVNamespace;\n}",
        "export interface Env\n{\n  A: KVNamespace,\n}",
        "interface Env { readonly A?: KVNamespace }",
        'interface Env { "A": KVNamespace<"x" | "y">; }',
        "interface Env { A: KVNamespace | undefined }",
        "interface Env { A: undefined | KVNamespace }",
        "interface Env { A: Cloudflare.KVNamespace }",
        'interface Env { A: import("@cloudflare/workers-types").KVNamespace }',
        "interface Env<T = {}> { A: KVNamespace }",
        "type Env = { A: KVNamespace };",
        "type Env = ({ A: KVNamespace });",
        "type Env<T extends { x: 1 } = any> = { A: KVNamespace }",
        "interface Base { A: KVNamespace }\ninterface Env extends Base {}",
        "interface Base { A: KVNamespace }\ntype Env = Base & { };",
        "declare namespace Cloudflare { interface Env { A: KVNamespace } }",
        "declare global { interface Env { A: KVNamespace } }",
        "type B = { A: KVNamespace }\nexport default {} satisfies ExportedHandler<B>;",
        "type B = { A: KVNamespace };\nexport default { fetch(r: Request, env: B) {} };",
        "export default { fetch(r: Request, env: { A: KVNamespace }) {} };",
        "type B = { A: KVNamespace };\nconst app = new Hono<{ Bindings: B }>();",
        "const app = new Hono<{ Bindings: { A: KVNamespace } }>();",
        "interface Env {}\ninterface Env { A: KVNamespace }",
        "const s = '{'; interface Env { A: KVNamespace }",
        "if (a < b) c();\ninterface Env { A: KVNamespace }",
    ],
)
def test_a_namespace_is_found(source: str) -> None:
    assert members(source) == {"A": "KVNamespace"}


@pytest.mark.parametrize(
    "source",
    [
        "// interface Env { A: KVNamespace }",
        "/* interface Env { A: KVNamespace } */",
        "const a = 'interface Env { A: KVNamespace }';",
        "const a = `interface Env { A: KVNamespace }`;",
        "interface Env { /* A: KVNamespace */ }",
        "interface Other { A: KVNamespace }",
        "a.interface; Env = { A: KVNamespace }",
        "interface Env {",
        "interface Env { A: KVNamespace",
        "type Env =",
        "interface",
        "const config = { env: { A: KVNamespace } };",
        "interface Env extends Env {}",
        "",
    ],
)
def test_what_only_looks_like_a_declaration_is_none(source: str) -> None:
    assert members(source) == {}


def test_members_may_end_with_their_lines() -> None:
    source = """
    interface Env {
      AI: Ai
      CACHE: KVNamespace
      readonly MODEL: "a" | "b"
      limit?: number
      make(name: string): KVNamespace
      nested: { INNER: KVNamespace; other: string }
      call: (space: KVNamespace) => void
      many: Map<string, KVNamespace>
      [key: string]: unknown
      LAST: R2Bucket
    }
    """

    found = members(source)

    assert found["AI"] == "Ai"
    assert found["LAST"] == "R2Bucket"
    assert [name for name, kind in found.items() if kind == "KVNamespace"] == ["CACHE"]
    assert "INNER" not in found


def test_the_first_declaration_of_a_name_wins() -> None:
    source = "interface Env { A: Ai }\ninterface Base { A: KVNamespace }"

    assert members(source + "\ninterface Env extends Base {}") == {"A": "Ai"}


@given(st.lists(PIECES).map("".join) | st.text())
def test_any_text_is_read(source: str) -> None:
    read_env(source)


def test_a_long_chain_of_types_is_read_once() -> None:
    source = "".join(f"interface T{n} extends T{n + 1}, T{n + 2} {{}}\n" for n in range(400))

    assert members(source + "interface Env extends T0 {}") == {}
