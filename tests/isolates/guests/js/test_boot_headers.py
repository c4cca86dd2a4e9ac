"""Headers."""

from pathlib import Path
from typing import Any

import pytest

from tests.isolates.guests.js.cases import Cases, Thrown, parametrized
from tests.support.javascript import JavaScript, run_cases

CASES: Cases = {
    "names are lower case and sorted, values combined": (
        "return [...new Headers([['B', '2'], ['a', '1'], ['b', '3']])]",
        [["a", "1"], ["b", "2, 3"]],
    ),
    "from a record": ("return [...new Headers({ A: 'x', b: 5 })]", [["a", "x"], ["b", "5"]]),
    "from headers": (
        "const h = new Headers({ a: 'x' }); const c = new Headers(h); c.set('a', 'y');"
        "return [h.get('a'), c.get('a')]",
        ["x", "y"],
    ),
    "values are trimmed": ("return new Headers({ a: '\\t x \\r\\n' }).get('A')", "x"),
    "a missing header is null": ("return new Headers().get('a')", None),
    "has and delete": (
        "const h = new Headers({ a: '1', b: '2' }); h.delete('A'); return [h.has('a'), h.has('B')]",
        [False, True],
    ),
    "cookies stay apart": (
        "const h = new Headers(); h.append('Set-Cookie', 'a=1'); h.append('set-cookie', 'b=2');"
        "return [h.getSetCookie(), h.get('set-cookie'), [...h]]",
        [
            ["a=1", "b=2"],
            "a=1, b=2",
            [["set-cookie", "a=1"], ["set-cookie", "b=2"]],
        ],
    ),
    "set replaces all": (
        "const h = new Headers([['a', '1'], ['a', '2']]); h.set('a', '3'); return [...h]",
        [["a", "3"]],
    ),
    "an iterator sees later changes": (
        "const h = new Headers({ a: '1', c: '3' }); const i = h.keys(); i.next(); h.set('b', '2');"
        "return [i.next().value, i.next().value, i.next().done]",
        ["b", "c", True],
    ),
    "forEach passes value, name, headers": (
        "const seen = []; const h = new Headers({ a: '1' });"
        "h.forEach((v, k, o) => seen.push(v, k, o === h)); return seen",
        ["1", "a", True],
    ),
    "looks native": (
        "return [String(new Headers()), Object.keys(new Headers()), Object.keys(Headers.prototype),"
        " String(new Headers().entries())]",
        [
            "[object Headers]",
            [],
            [
                "append", "delete", "get", "getAll", "getSetCookie", "has", "set",
                "entries", "forEach", "keys", "values",
            ],
            "[object Headers Iterator]",
        ],
    ),
    "the request's headers are read lazily and right": (
        "return [request.headers.get('X-A'), [...request.headers]]",
        ["1, 2", [["cookie", "c=d"], ["x-a", "1, 2"]]],
    ),
    "a bad name": ("new Headers({ 'a b': 'x' })", Thrown("TypeError", "Invalid header name.")),
    "a bad value": (
        "new Headers({ a: 'x\\ny' })", Thrown("TypeError", "Invalid header value."),
    ),
    "headers of a redirect are immutable": (
        "Response.redirect('http://a/').headers.set('a', 'b')",
        Thrown("TypeError", "Can't modify immutable headers."),
    ),
    "the incoming request's headers are immutable, a copy's are not": (
        "const copy = new Request(request); copy.headers.set('x-a', '9');"
        "try { request.headers.set('x-a', '9'); } catch (e) { return [e.message, copy.headers.get('x-a')]; }",
        ["Can't modify immutable headers.", "9"],
    ),
    "a short pair": (
        "new Headers([['a']])",
        Thrown(
            "TypeError",
            "To initialize a Headers object from a sequence, each inner sequence must have exactly "
            "two elements.",
        ),
    ),
}  # fmt: skip

REQUEST = {"headers": [("x-a", "1"), ("cookie", "c=d"), ("x-a", "2")]}


@pytest.fixture(scope="module")
def outcomes(cache_dir: Path) -> dict[str, Any]:
    bodies = {name: body for name, (body, _) in CASES.items()}
    return run_cases(cache_dir, bodies, request=REQUEST)


@parametrized(CASES)
def test_headers(outcomes: dict[str, Any], name: str, expected: object) -> None:
    assert outcomes[name] == expected


async def test_methods_need_their_own_kind_of_object(js: JavaScript) -> None:
    name, _, message = await js.thrown("Headers.prototype.get.call({}, 'a')")

    assert name == "TypeError"
    assert message.startswith("Illegal invocation")


async def test_header_values_cross_the_wire_as_utf8(js: JavaScript) -> None:
    source = """export default { fetch(request) {
      return new Response(request.headers.get("x-in"), { headers: { "x-out": "é☃" } });
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch(headers=[("x-in", "ü☃".encode().decode("latin-1"))])

    assert answer.text == "ü☃"
    assert (answer.header("x-out") or "").encode("latin-1").decode() == "é☃"
