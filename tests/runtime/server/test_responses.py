import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.runtime.server.errors import BadReply
from belem.runtime.server.responses import read_reply_head


def test_status_and_headers_are_read() -> None:
    head = read_reply_head("201 Created\ncontent-type:text/plain\nX-Thing: a:b ")

    assert head.status == 201
    assert head.headers == [(b"content-type", b"text/plain"), (b"x-thing", b"a:b")]


def test_every_cookie_stays_a_header_of_its_own() -> None:
    head = read_reply_head("200 OK\nset-cookie:a=1\nset-cookie:b=2\n")

    assert head.headers == [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]


def test_framing_is_not_the_guests() -> None:
    head = read_reply_head(
        "200 OK\ncontent-length:999\ntransfer-encoding:chunked\nconnection:close\nupgrade:x\ndate:d"
    )

    assert head.headers == []
    assert head.content_length == 999


@pytest.mark.parametrize("length", ["-1", "1e3", "", "9" * 30, "١"])
def test_a_length_that_is_none_is_dropped(length: str) -> None:
    try:
        assert read_reply_head(f"200 OK\ncontent-length:{length}").content_length is None
    except BadReply:
        assert not length.isascii()


@pytest.mark.parametrize(
    "head",
    [
        "",
        "OK",
        "99 Low",
        "101 Switching Protocols",
        "600 High",
        "2000 Long",
        "200 OK\rX",
        "200 OK\nno colon",
        "200 OK\n:empty",
        "200 OK\nbad name:x",
        "200 OK\nx:a\rb",
        "200 OK\nx:a\x00",
        "200 OK\nx:a\x7f",
        "200 OK\nx:\u20ac",
        "200 OK\n\nx:after",
        "²00 OK",
    ],
)
def test_a_head_that_http_cannot_carry_is_refused(head: str) -> None:
    with pytest.raises(BadReply):
        read_reply_head(head)


def test_too_many_headers_are_refused() -> None:
    with pytest.raises(BadReply, match="the limit is 131072"):
        read_reply_head("200 OK\n" + "x:y\n" * 40_000)


@given(st.text(max_size=60))
def test_what_is_accepted_is_safe_to_write(text: str) -> None:
    try:
        head = read_reply_head("200 " + text)
    except BadReply:
        return

    for name, value in head.headers:
        assert re.fullmatch(rb"[!#$%&'*+\-.^_`|~0-9a-z]+", name)
        assert not re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value)
