"""JSON.parse: the short way reads what the engine's parser reads, and leaves the rest to it.

With a reviver, the engine's parser does all the work: it is the measure here.
"""

import json
import random

import pytest

from belem.sdk.ops import Json
from tests.support.js_guest import JsGuest

COMPARE = """
const whole = (value) => typeof value === "object" && value !== null
  ? [Array.isArray(value), Reflect.ownKeys(value).map((key) => [key, whole(value[key])])]
  : [typeof value, Object.is(value, -0) ? "-0" : String(value)];
const outcome = (read) => { try { return whole(read()) } catch (e) { return e.message } };
const differing = texts.filter((text) =>
  JSON.stringify(outcome(() => JSON.parse(text))) !==
  JSON.stringify(outcome(() => JSON.parse(text, (_, value) => value))));
return differing;
"""


def differing(guest: JsGuest, texts: list[str]) -> Json:
    return guest.evaluate(f"const texts = {json.dumps(texts)}; {COMPARE}")


VALID = [
    "0",
    "-0",
    "-0.0",
    "1.50",
    "123456789012345",
    "1234567890123456789",
    "0.1",
    "1e3",
    "1E-7",
    "2.2250738585072014e-308",
    "1e400",
    "9007199254740993",
    "0.30000000000000004",
    "123456.789",
    '""',
    '"\\u00e9\\ud83d\\ude00\\ud800"',
    '"é日😀"',
    '"\\"\\\\\\/\\b\\f\\n\\r\\t"',
    "true",
    " [ ] ",
    "{ }",
    '\t{"a" : [1 , 2,\r\n3] }\n',
    '{"a":1,"a":2}',
    '{"__proto__":1,"constructor":2,"toJSON":3}',
    '{"2":1,"1":2,"b":3,"01":4,"-1":5}',
    '{"é":1,"\\u00e9":2}',
    '[{"a":1,"b":2},{"a":3,"b":4},{"b":5,"a":6},{"a":7},{"a":8,"b":9,"c":0},{}]',
    '[{"é":1},{"é":2},{"\\u00e9":3},{"Ã©":4}]',
    '[{"a":{"a":{"a":1}}},{"a":{"a":{"a":2}}},{"a":{"a":3}}]',
    '[{"1":0,"x":1},{"1":0,"x":1}]',
    '[{"a":1},{"a":1,"a":2},{"a":3}]',
    "[[[1],[2]],[[3]],[]]",
]
MALFORMED = [
    "",
    " ",
    "01",
    "-",
    "+1",
    ".5",
    "1.",
    "1e",
    "1e+",
    "tru",
    "nulll",
    "NaN",
    "'a'",
    '"a',
    '"\n"',
    '"\\x41"',
    '"\\u12"',
    '"\\u12g4"',
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1",
    "{",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{"a":1 "b":2}',
    "{a:1}",
    '{"a":1}}',
    "1 2",
    "[1]\u00a0",
    "\ufeff1",
    '[{"a":1},{"a"',
    '[{"abcdef":1},{"abcde',
]


@pytest.mark.parametrize("text", [*VALID, *MALFORMED])
def test_the_short_way_agrees_with_the_long_one(guest: JsGuest, text: str) -> None:
    assert differing(guest, [text, f"[{text}]", f'{{"k":{text}}}']) == []


@pytest.mark.parametrize("text", VALID)
def test_valid_texts_are_read(guest: JsGuest, text: str) -> None:
    value = guest.evaluate(f"return typeof JSON.parse({json.dumps(text)})")

    assert value in ("number", "string", "boolean", "object")


@pytest.mark.parametrize("seed", range(4))
def test_texts_with_errors_anywhere(guest: JsGuest, seed: int) -> None:
    source = random.Random(seed)
    rows = [{"id": i, "name": f"n{i}é"[: i % 4], "v": [i / 4, None, True]} for i in range(4)]
    text = json.dumps({"rows": rows, "more": {"a": {"id": "\u65e5"}}}, ensure_ascii=seed % 2 == 0)
    texts: list[str] = []
    for _ in range(300):
        at = source.randrange(len(text))
        texts.append(text[:at] + source.choice(['"', "{", "}", "[", ",", ":", "\\", "1", "", "e"]))
        texts.append(texts[-1] + text[at + 1 :])

    assert differing(guest, texts) == []


@pytest.mark.parametrize("depth", [50, 198, 200, 202, 400])
def test_texts_of_any_depth(guest: JsGuest, depth: int) -> None:
    text = '[{"a":' * (depth // 2) + "1" + "}]" * (depth // 2)

    assert guest.evaluate(f"return JSON.stringify(JSON.parse({json.dumps(text)}))") == text


def test_objects_of_one_shape_are_still_their_own(guest: JsGuest) -> None:
    body = """const [one, two] = JSON.parse('[{"a":1,"b":{"c":1}},{"a":2,"b":{"c":2}}]');
    one.d = 3; delete one.a; two.b.c = 4; Object.freeze(two);
    const three = JSON.parse('{"a":5,"b":6}');
    return [one, two, three, Object.isFrozen(three)]"""

    assert guest.evaluate(body) == [
        {"b": {"c": 1}, "d": 3},
        {"a": 2, "b": {"c": 4}},
        {"a": 5, "b": 6},
        False,
    ]


def test_a_polluted_prototype_changes_nothing(guest: JsGuest) -> None:
    body = """let set = 0;
    Object.defineProperty(Object.prototype, "a", { set() { set += 1 }, configurable: true });
    Object.defineProperty(Array.prototype, "0", { set() { set += 1 }, configurable: true });
    try { return [JSON.parse('[{"a":1}]')[0].a, set] }
    finally { delete Object.prototype.a; delete Array.prototype[0] }"""

    assert guest.evaluate(body) == [1, 0]


def test_a_large_text(guest: JsGuest) -> None:
    body = """
    const rows = Array.from({length: 20000}, (_, i) => ({i, s: "x".repeat(i % 50), n: i / 8}));
    const text = JSON.stringify(rows);
    return JSON.stringify(JSON.parse(text)) === text"""

    assert guest.evaluate(body) is True
