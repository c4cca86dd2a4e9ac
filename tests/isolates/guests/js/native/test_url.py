"""URLs as the engine's parser sees them."""

import json
from typing import cast

import pytest

from tests.support.js_guest import JsGuest

# The getters as host_object.c describes them.
PARTS = """
const parts = ([s, protocolEnd, userEnd, hostStart, hostEnd, port, path, search, hash]) => {
  const end = (...marks) => marks.find((m) => m >= 0) ?? s.length;
  const at = hostStart + (s[hostStart] === '@');
  return {
    href: s, protocol: s.slice(0, protocolEnd),
    username: userEnd > protocolEnd + 2 ? s.slice(protocolEnd + 2, userEnd) : '',
    password: s[userEnd] === ':' && hostStart > userEnd ? s.slice(userEnd + 1, hostStart) : '',
    hostname: s.slice(at, hostEnd), port: port >= 0 ? s.slice(hostEnd + 1, path) : '',
    pathname: s.slice(path, end(search, hash)),
    search: search >= 0 && end(hash) > search + 1 ? s.slice(search, end(hash)) : '',
    hash: hash >= 0 && s.length > hash + 1 ? s.slice(hash) : '' } };
"""


def _parts(guest: JsGuest, expression: str) -> dict[str, str]:
    return cast(dict[str, str], guest.evaluate(f"{PARTS} return parts({expression})"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "https://user:pa%40ss@Example.com:8080/a/../b%20c?q=1&r#top",
            {
                "href": "https://user:pa%40ss@example.com:8080/b%20c?q=1&r#top",
                "protocol": "https:",
                "username": "user",
                "password": "pa%40ss",
                "hostname": "example.com",
                "port": "8080",
                "pathname": "/b%20c",
                "search": "?q=1&r",
                "hash": "#top",
            },
        ),
        (
            "http://a",
            {"hostname": "a", "pathname": "/", "username": "", "password": "", "port": ""},
        ),
        ("http://u@a/", {"username": "u", "password": "", "hostname": "a"}),
        ("http://:p@a/", {"username": "", "password": "p", "hostname": "a"}),
        ("http://a:80/?#", {"port": "", "search": "", "hash": "", "href": "http://a/?#"}),
        (
            "mailto:x@y?s",
            {"protocol": "mailto:", "pathname": "x@y", "search": "?s", "hostname": ""},
        ),
        ("file:///c/d", {"protocol": "file:", "hostname": "", "pathname": "/c/d"}),
        ("http://[::1]:9/x", {"hostname": "[::1]", "port": "9"}),
        ("http://münchen.de/ä?ö#ü", {"hostname": "xn--mnchen-3ya.de", "pathname": "/%C3%A4"}),
        ("foo://h?x#y", {"hostname": "h", "pathname": "", "search": "?x", "hash": "#y"}),
        ("web+demo:/.//not-a-host/", {"pathname": "//not-a-host/", "hostname": ""}),
    ],
)
def test_the_offsets_give_the_parts(guest: JsGuest, text: str, expected: dict[str, str]) -> None:
    found = _parts(guest, f"H.urlParse({json.dumps(text)})")

    assert {key: found[key] for key in expected} == expected


def test_a_base_is_resolved_against(guest: JsGuest) -> None:
    assert _parts(guest, "H.urlParse('../x?y', 'http://a/b/c/d')")["href"] == "http://a/b/x?y"


@pytest.mark.parametrize(
    "call", ["'nope'", "'/x'", "'http://'", "'http://a:99999'", "'x', 'nope'", "''"]
)
def test_what_is_no_url_is_null(guest: JsGuest, call: str) -> None:
    assert guest.evaluate(f"return [H.urlParse({call}), H.urlCanParse({call})]") == [None, False]


def test_can_parse(guest: JsGuest) -> None:
    assert guest.evaluate("return [H.urlCanParse('http://a'), H.urlCanParse('x', 'http://a')]") == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("which", "value", "href"),
    [
        ("href", "https://z/q", "https://z/q"),
        ("protocol", "https", "https://u:p@h:81/a?b#c"),
        ("protocol", "mailto", "http://u:p@h:81/a?b#c"),
        ("username", "é", "http://%C3%A9:p@h:81/a?b#c"),
        ("password", "", "http://u@h:81/a?b#c"),
        ("host", "x:99", "http://u:p@x:99/a?b#c"),
        ("hostname", "y", "http://u:p@y:81/a?b#c"),
        ("hostname", "", "http://u:p@h:81/a?b#c"),
        ("port", "80", "http://u:p@h/a?b#c"),
        ("port", "x", "http://u:p@h:81/a?b#c"),
        ("pathname", "d e", "http://u:p@h:81/d%20e?b#c"),
        ("search", "?z", "http://u:p@h:81/a?z#c"),
        ("search", "", "http://u:p@h:81/a#c"),
        ("hash", "", "http://u:p@h:81/a?b"),
        ("hash", "\\ud800", "http://u:p@h:81/a?b#%EF%BF%BD"),
    ],
)
def test_setters(guest: JsGuest, which: str, value: str, href: str) -> None:
    call = f"H.urlSet('http://u:p@h:81/a?b#c', '{which}', '{value}')"

    assert _parts(guest, call)["href"] == href


def test_a_setter_refuses_a_bad_url_and_a_bad_name(guest: JsGuest) -> None:
    assert guest.evaluate("return H.urlSet('nope', 'port', '1')") is None
    assert guest.evaluate("return H.urlSet('http://a', 'href', 'nope')") is None
    assert guest.throws("H.urlSet('http://a', 'origin', 'x')") == (
        "TypeError",
        'a URL has no settable "origin"',
    )


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://a:443/x", "https://a"),
        ("http://u:p@a:81/x", "http://a:81"),
        ("blob:https://a/b-c", "https://a"),
        ("data:,x", "null"),
        ("file:///x", "null"),
        ("nope", "null"),
    ],
)
def test_origin(guest: JsGuest, text: str, origin: str) -> None:
    assert guest.evaluate(f"return H.urlOrigin('{text}')") == origin


@pytest.mark.parametrize("text", ["'http://a/\\ud800'", "'http://\\udc00/'", "'\\ud83d'", "'\\0'"])
def test_odd_strings_do_no_harm(guest: JsGuest, text: str) -> None:
    guest.evaluate(
        f"H.urlParse({text}); H.urlParse('x', {text}); H.urlSet('http://a', 'host', {text})"
    )

    assert guest.evaluate("return H.urlParse('http://a')[0]") == "http://a/"


def test_nothing_leaks_from_urls(guest: JsGuest) -> None:
    loop = (
        "for (let i = 0; i < 300; i++) { H.urlParse('http://é/' + i, 'http://b'); H.urlParse('no'"
        " + i);"
        " H.urlSet('http://a/' + i, 'hash', 'ü' + i); H.urlOrigin('http://ü' + i);"
        " try { H.urlSet('http://a', 'x' + i, '') } catch {} try { H.urlParse(Symbol()) } catch {}"
        " try { H.urlParse('é', Symbol()) } catch {} try { H.urlSet('é', 'hash', Symbol()) }"
        " catch {} }"
    )
    for _ in range(10):
        guest.evaluate(loop)
    guest.collect()
    heap, pages = guest.heap_bytes(), len(guest.memory())

    for _ in range(20):
        guest.evaluate(loop)
    guest.collect()

    assert guest.heap_bytes() - heap < 2_000
    assert len(guest.memory()) == pages  # ada allocates outside the engine's heap
