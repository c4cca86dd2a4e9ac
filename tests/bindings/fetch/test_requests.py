from collections.abc import AsyncIterator
from typing import Any

import pytest

from belem.bindings.fetch.requests import Outbound, follow, parse
from belem.sdk.ops import Call, Json, Rejection

URL = "https://example.com/a"


def asked(**fields: Json) -> Outbound:
    return parse(Call("fetch", [{"url": URL, **fields}]))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "data:,x",
        "ws://example.com/",
        "http://",
        "http:///path",
        "/relative",
        "http://a b/",
        "http://example.com:99999/",
        "http://example.com/\r\nHost: other",
        "http://" + "x" * 20_000,
        "",
        5,
        None,
    ],
)
def test_a_url_that_is_not_for_fetch_is_refused(url: Json) -> None:
    with pytest.raises(Rejection) as caught:
        parse(Call("fetch", [{"url": url}]))

    assert caught.value.name == "TypeError"


@pytest.mark.parametrize(
    "headers",
    [
        [["x-a", "1\r\nx-b: 2"]],
        [["x-a", "1\n2"]],
        [["x-a", "\0"]],
        [["x-a: 1\r\nx-b", "2"]],
        [["x a", "1"]],
        [["", "1"]],
        [["x-é", "1"]],
        [["x-a", 1]],
        [["x-a"]],
        ["x-a"],
        {"x-a": "1"},
        "x-a: 1",
        [["x-a", "1" * 140_000]],
        [["Upgrade", "websocket"]],
    ],
)
def test_headers_that_are_none_are_refused(headers: Any) -> None:
    with pytest.raises(Rejection) as caught:
        asked(headers=headers)

    assert caught.value.name == "TypeError"


@pytest.mark.parametrize("method", ["", "A B", "GET\r\n", "CONNECT", "trace", "TRACK", None, 5])
def test_methods_that_are_not_for_fetch_are_refused(method: Json) -> None:
    with pytest.raises(Rejection, match="Invalid HTTP method string"):
        asked(method=method)


@pytest.mark.parametrize("mode", ["", "Follow", None, 1])
def test_an_unknown_redirect_mode_is_refused(mode: Json) -> None:
    with pytest.raises(Rejection, match="Invalid redirect value"):
        asked(redirect=mode)


@pytest.mark.parametrize("args", [None, [], ["https://example.com"], [{}, {}], {"url": URL}])
def test_arguments_of_another_shape_are_refused(args: Json) -> None:
    with pytest.raises(Rejection):
        parse(Call("fetch", args))


def test_credentials_and_fragment_of_the_url_are_dropped() -> None:
    request = parse(Call("fetch", [{"url": "https://user:secret@example.com/a?b#c"}]))

    assert str(request.url) == "https://example.com/a?b"


def redirected(status: int, method: str = "POST", body: Any = b"body", to: str = "/b") -> Outbound:
    headers: Json = [["content-type", "text/plain"], ["authorization", "secret"], ["x-kept", "1"]]
    request = parse(Call("fetch", [{"url": URL, "method": method, "headers": headers}], body))
    return follow(request, status, to)


@pytest.mark.parametrize(
    ("status", "method", "expected"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (302, "PUT", "PUT"),
        (307, "POST", "POST"),
        (308, "DELETE", "DELETE"),
    ],
)
def test_the_status_says_what_becomes_of_the_method(
    status: int, method: str, expected: str
) -> None:
    request = redirected(status, method)

    assert request.method == expected
    changed = method != expected
    assert (request.body is None) == changed
    assert ("content-type" in dict(request.headers)) != changed
    assert "authorization" in dict(request.headers)


@pytest.mark.parametrize(
    ("to", "kept"),
    [
        ("/b", True),
        ("//example.com/b", True),
        ("https://example.com:443/b", True),
        ("http://example.com/b", False),
        ("https://example.com:444/b", False),
        ("https://www.example.com/b", False),
        ("//evil.example/", False),
    ],
)
def test_credentials_stay_with_their_origin(to: str, kept: bool) -> None:
    request = redirected(307, to=to)

    assert ("authorization" in dict(request.headers)) == kept
    assert "x-kept" in dict(request.headers)


@pytest.mark.parametrize(
    "to", ["http://", "ftp://example.com/", "javascript:alert(1)", "http://a:b"]
)
def test_a_location_that_is_not_for_fetch_is_refused(to: str) -> None:
    with pytest.raises(Rejection):
        redirected(307, to=to)


async def test_a_stream_cannot_be_sent_twice() -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b"once"

    with pytest.raises(Rejection, match="one-time-use body"):
        redirected(307, body=stream())

    assert redirected(303, body=stream()).body is None
