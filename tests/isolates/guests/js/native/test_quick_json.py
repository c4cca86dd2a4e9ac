"""JSON.stringify: the short ways through it give what the long one gives."""

import json

import pytest

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
