"""JSON.stringify: the short ways through it give what the long one gives."""

import json
from typing import cast

import pytest

from belem.sdk.ops import Json
from tests.support.js_guest import JsGuest


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("{a: 1, b: 'x', c: null, d: true, e: -2147483648, f: 1.5, g: []}", None),
        ("{b: 1, 10: 'ten', 2: 'two', a: {}}", '{"2":"two","10":"ten","b":1,"a":{}}'),
        ("{a: undefined, b() {}, c: Symbol(), [Symbol()]: 1, d: NaN, e: -0}", '{"d":null,"e":0}'),
        ("['\\u0000\\n\"\\\\', 'é', '日本', '\\ud800', 'x'.repeat(3), undefined, Symbol()]", None),
        ("{'k\"\\n': 1, 'é': 2, '': 3}", '{"k\\"\\n":1,"é":2,"":3}'),
        ("{get a() { return 1 }, b: 2}", '{"a":1,"b":2}'),
        ("{a: {toJSON(key) { return 'key ' + key }}}", '{"a":"key a"}'),
        ("[[{toJSON(key) { return typeof key + key }}]]", '[["string0"]]'),
        ("Object.defineProperty({a: 1}, 'hidden', {value: 2})", '{"a":1}'),
        ("Object.create({inherited: 1}, {own: {value: 2, enumerable: true}})", '{"own":2}'),
        ("new (class { x = 1; #y = 2 })", '{"x":1}'),
        ("new Proxy({a: 1}, {})", '{"a":1}'),
    ],
)
def test_values_are_written_as_the_language_says(
    guest: JsGuest, expression: str, expected: str | None
) -> None:
    text = guest.evaluate(f"return JSON.stringify({expression})")

    if expected is None:
        assert json.loads(str(text)) == guest.evaluate(f"return {expression}")
    else:
        assert text == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("delete this.b", '{"a":1,"z":0}'),
        ("delete this.z", '{"a":1,"b":2}'),
        ("this.b = 3; this.c = 4", '{"a":1,"b":3,"z":0}'),
        ("Object.defineProperty(this, 'b', {get: () => 9})", '{"a":1,"b":9,"z":0}'),
        ("delete this.a; delete this.b; this.b = 5", '{"a":1,"b":5,"z":0}'),
    ],
)
def test_an_object_that_changes_meanwhile_keeps_the_keys_it_had(
    guest: JsGuest, change: str, expected: str
) -> None:
    made = "{a: {toJSON() { change.call(o); return 1 }}, b: 2, z: 0}"

    text = guest.evaluate(
        f"const change = function () {{ {change} }}, o = {made}; return JSON.stringify(o)"
    )

    assert text == expected


def test_replacers_and_indents(guest: JsGuest) -> None:
    value = "{a: [1, {b: 'x'}], c: {}, d: []}"

    assert guest.evaluate(f"return JSON.stringify({value}, null, 2)") == json.dumps(
        {"a": [1, {"b": "x"}], "c": {}, "d": []}, indent=2
    )
    assert guest.evaluate(f"return JSON.stringify({value}, ['c', 'a'])") == '{"c":{},"a":[1,{}]}'
    replaced = "(key, it) => (typeof it === 'number' ? key + it : it)"
    assert guest.evaluate(f"return JSON.stringify({{a: [1], b: 2}}, {replaced})") == (
        '{"a":["01"],"b":"b2"}'
    )


def test_circles_and_big_integers_are_refused(guest: JsGuest) -> None:
    assert guest.throws("const o = {}; o.o = o; JSON.stringify(o)")[0] == "TypeError"
    assert guest.throws("JSON.stringify({a: 1n})")[0] == "TypeError"


@pytest.mark.parametrize("before", range(18))
@pytest.mark.parametrize("special", ['"', "\\", "\n", "\x00", "\x1f", " ", "\x7f", "é", "日", "😀"])
def test_every_place_of_a_string_is_looked_at(guest: JsGuest, before: int, special: str) -> None:
    text = "a" * before + special + "b" * (17 - before)

    written = guest.evaluate(f"return JSON.stringify([{json.dumps(text)}, 'x'])")

    assert json.loads(str(written)) == [text, "x"]


@pytest.mark.parametrize(
    ("setup", "expression", "expected"),
    [
        ("", "[1, , 3]", "[1,null,3]"),
        ("const a = [1]; a.more = 2", "a", "[1]"),
        ("const a = [1]; a.toJSON = () => 'own'", "[a]", '["own"]'),
        ("const a = [1]; a.length = 3", "a", "[1,null,null]"),
        ("class A extends Array { toJSON() { return 'sub' } }", "[A.of(1)]", '["sub"]'),
        ("class O { toJSON() { return 'class' } }", "[new O()]", '["class"]'),
        ("Array.prototype.toJSON = () => 'array'", "({a: [1]})", '{"a":"array"}'),
        ("Object.prototype.toJSON = () => 'object'", "[1]", '"object"'),
        ("Object.prototype[0] = 'hole'", "[, 1]", '["hole",1]'),
        ("", "[new Date(0), 1]", '["1970-01-01T00:00:00.000Z",1]'),
        ("", "[new Map([[1, 2]]), /x/, new Error('x'), () => 1]", "[{},{},{},null]"),
        ("", "[new Number(1), new String('s'), new Boolean(false)]", '[1,"s",false]'),
        ("", "[Object.create(null), {__proto__: null, a: 1}]", '[{},{"a":1}]'),
        ("", "{'2024-01-02': 1, a: 2, '10': 3}", '{"10":3,"2024-01-02":1,"a":2}'),
        ("let s = 'x'; for (let i = 0; i < 9; i++) s += s + i", "[s.length]", "[1023]"),
        ("", "new Uint8Array(2)", '{"0":0,"1":0}'),
        ("", "(function () { return arguments })(1, 2)", '{"0":1,"1":2}'),
        ("", "Object.freeze([Object.freeze({a: [1.25]})])", '[{"a":[1.25]}]'),
    ],
)
def test_what_is_not_plain_is_written_as_the_language_says(
    guest: JsGuest, setup: str, expression: str, expected: str
) -> None:
    undo = "delete Array.prototype.toJSON; delete Object.prototype.toJSON"
    body = f"try {{ {setup}; return JSON.stringify({expression}) }} finally {{ {undo} }}"

    assert guest.evaluate(body) == expected


@pytest.mark.parametrize("depth", [10, 63, 64, 65, 500])
def test_values_of_any_depth(guest: JsGuest, depth: int) -> None:
    body = (
        "let v = 1; for (let i = 0; i < {}; i++) v = i % 2 ? [v] : {{v}}; return JSON.stringify(v)"
    )

    text = str(guest.evaluate(body.format(depth)))

    assert text.count("[") + text.count("{") == depth
    json.loads(text)


@pytest.mark.parametrize("cycle", ["o.o = o", "o.o = [[o]]", "o.o = [1, {o}]; o.p = o.o"])
def test_cycles_are_refused(guest: JsGuest, cycle: str) -> None:
    body = f"const o = {{a: 1}}; {cycle}; return JSON.stringify({{o}})"

    assert guest.throws(body) == ("TypeError", "circular reference")


def test_long_texts_of_every_width(guest: JsGuest) -> None:
    body = """const rows = Array.from({length: 5000}, (_, i) => ({i, text: "t".repeat(i % 60)}));
    rows.push({text: "\u65e5".repeat(3000)}, ...rows.slice(0, 50));
    return [JSON.stringify(rows), rows]"""

    text, rows = cast(tuple[str, Json], guest.evaluate(body))

    assert json.loads(text) == rows
