"""Template literals and map(): the short ways give what the long ones give."""

import pytest

from tests.support.js_guest import JsGuest


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("`${1}${-20}${0}${2147483647}${-2147483648}`", "1-2002147483647-2147483648"),
        ("`a${1}b${'c'}d${'日本'}e${2}é`", "a1bcd日本e2é"),
        ("`${'日'}${1}${'é'}`", "日1é"),
        ("`${1.5}|${true}|${null}|${undefined}|${1n}`", "1.5|true|null|undefined|1"),
        ("`${{toString: () => 'o'}}${[1, [2]]}`", "o1,2"),
        ("`${''}${''}`", ""),
        ("'a'.concat()", "a"),
        ("'a'.concat(1, 'b'.repeat(70), '')", "a1" + "b" * 70),
        ("'😀'.concat('x', 3)", "😀x3"),
        ("''.concat('b'.repeat(7), 'c'.repeat(8), 'd'.repeat(9))", "b" * 7 + "c" * 8 + "d" * 9),
        ("String.prototype.concat.call(1, 2)", "12"),
        ("[1, 2, 3].map((x) => x * 2).join()", "2,4,6"),
        ("[1, , 3].map((x) => x)", "1,,3"),
        ("1 in [1, , 3].map((x) => x)", "false"),
        ("[1, 2].map((x, i, all) => (all.length = 0, x))", "1,"),
        ("Array.from([1, 2].map((x) => [x]), String)", "1,2"),
    ],
)
def test_text_and_lists(guest: JsGuest, expression: str, expected: str) -> None:
    assert guest.evaluate(f"return String({expression})") == expected


def test_a_template_calls_each_value_once_and_in_order(guest: JsGuest) -> None:
    body = """const seen = [];
    const value = (name) => ({ toString() { seen.push(name); return name } });
    return [`${value("a")}-${1}-${value("b")}`, seen]"""

    assert guest.evaluate(body) == ["a-1-b", ["a", "b"]]


def test_a_symbol_in_a_template_is_an_error(guest: JsGuest) -> None:
    assert guest.throws("return `a${1}${Symbol()}`")[0] == "TypeError"


def test_map_asks_a_species_for_its_list(guest: JsGuest) -> None:
    body = """class Own extends Array {}
    const own = Own.of(1, 2).map((x) => x + 1);
    const frozen = { [Symbol.species]: function () { return Object.freeze([]) } };
    const odd = Object.assign([1], { constructor: frozen });
    try { odd.map((x) => x) } catch (error) { return [own instanceof Own, [...own], error.name] }"""

    assert guest.evaluate(body) == [True, [2, 3], "TypeError"]


def test_map_defines_and_does_not_set(guest: JsGuest) -> None:
    body = """let calls = 0;
    Object.defineProperty(Array.prototype, "0", { set() { calls += 1 }, configurable: true });
    try { return [[5].map((x) => x)[0], calls] } finally { delete Array.prototype[0] }"""

    assert guest.evaluate(body) == [5, 0]
