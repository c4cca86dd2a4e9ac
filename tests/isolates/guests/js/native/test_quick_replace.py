"""Replacing with a regular expression: the short way does what the language's steps do.

A class of one's own that extends RegExp goes the long way; it is the measure here.
"""

import json
from typing import cast

import pytest

from tests.support.js_guest import JsGuest

SAME = """
class Own extends RegExp {}
const outcome = (pattern) => {
  const calls = [];
  const replacers = {
    call: (...given) => { calls.push(given.map(String)); return "<" + given.length + ">" },
    text: "-", empty: "", dollar: "[$&$1]", none: () => {}, object: () => ({toString: () => "o"}),
  };
  const results = Object.entries(replacers).map(([name, by]) => {
    try { return [name, text.replace(pattern, by), pattern.lastIndex] }
    catch (e) { return e.message }
  });
  return JSON.stringify([results, calls]);
};
return [outcome(regexp), outcome(new Own(regexp.source, regexp.flags))];
"""


def agree(guest: JsGuest, regexp: str, text: str) -> bool:
    body = f"const regexp = {regexp}, text = {json.dumps(text)}; {SAME}"
    short, long = cast(tuple[str, str], guest.evaluate(body))  # what SAME returns
    return short == long


@pytest.mark.parametrize(
    "regexp",
    [
        "/a/",
        "/a/g",
        "/(?:)/g",
        "/x*/g",
        "/(?:)/gu",
        "/[&<>]/g",
        "/(a)(b)?|(c)/g",
        "/(?=(b))/g",
        "/(?<name>b)/g",
        "/b/y",
        "/a/gy",
        "/B/gi",
        "/^./gm",
        "/./gs",
        "/./gu",
        "/./gv",
        "/b/dg",
        "/(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)/g",
        "/zzz/g",
        "/zzz/",
        "/$/g",
    ],
)
@pytest.mark.parametrize(
    "text",
    ["", "a", "abcabc", "<a> & <b>", "aa\nbb\nab", "é日😀a\ud83d b😀", "abcdefghijklmnopqrst"],
)
def test_the_short_way_agrees_with_the_long_one(guest: JsGuest, regexp: str, text: str) -> None:
    assert agree(guest, regexp, text)


@pytest.mark.parametrize(
    ("setup", "expression", "expected"),
    [
        ("const r = /a/g; r.exec = () => null", "'aa'.replace(r, 'b')", "aa"),
        ("const r = /a/g; r.lastIndex = 1", "'aa'.replace(r, 'b') + r.lastIndex", "bb0"),
        ("const r = /a/; r.lastIndex = 1", "'aa'.replace(r, 'b') + r.lastIndex", "ba1"),
        ("const r = /a/g", "'aaa'.replace(r, () => (r.compile('b'), 'c')) + r.source", "cccb"),
        ("const r = /a/g", "'aaa'.replace(r, () => { r.lastIndex = 9; return 'c' })", "ccc"),
        ("const r = Object.freeze(/a/)", "'aa'.replace(r, 'b')", "ba"),
        ("let n = 0", "'aaa'.replace(/a/g, () => { n += 1; return n })", "123"),
        ("", "'aaa'.replaceAll(/a/g, (m, at, all) => at + all.length)", "345"),
        ("const s = 'ab'.repeat(400)", "s.replace(/b/g, () => '') === 'a'.repeat(400)", "true"),
        (
            "let s = 'a'; for (let i = 0; i < 9; i++) s += s",
            "s.replace(/a/g, '') + s.length",
            "512",
        ),
    ],
)
def test_expressions_that_were_touched(
    guest: JsGuest, setup: str, expression: str, expected: str
) -> None:
    assert guest.evaluate(f"{setup}; return String({expression})") == expected


@pytest.mark.parametrize(
    "change",
    [
        "Object.defineProperty(RegExp.prototype, 'global', { get: () => false })",
        "Object.defineProperty(RegExp.prototype, 'flags', { get: () => '' })",
        "RegExp.prototype.exec = function () { this.seen = 1; return null }",
    ],
)
def test_a_changed_prototype_is_asked(guest: JsGuest, change: str) -> None:
    assert guest.evaluate("return 'aa'.replace(/a/g, 'b')") == "bb"

    answer = guest.evaluate(f"{change}; return 'aa'.replace(/a/g, 'b')")

    assert answer != "bb"


def test_what_a_replacer_throws_comes_out(guest: JsGuest) -> None:
    body = "'aa'.replace(/a/g, () => { throw new RangeError('mine') })"

    assert guest.throws(body) == ("RangeError", "mine")
    assert guest.throws("'a'.replace(/a/, () => Symbol())")[0] == "TypeError"
