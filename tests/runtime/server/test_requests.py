import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.runtime.server.errors import (
    BadRequest,
    BodyTooLarge,
    HeadersTooLarge,
    MethodNotAllowed,
    UrlTooLong,
)
from belem.runtime.server.requests import BodyPlan, RequestHead, RequestLimits, Scope, ray_id

LIMITS = RequestLimits()
Headers = list[tuple[bytes, bytes]]


def scope(
    headers: Headers | None = None,
    *,
    method: str = "GET",
    path: bytes = b"/",
    query: bytes = b"",
) -> Scope:
    return {
        "type": "http",
        "method": method,
        "scheme": "http",
        "raw_path": path,
        "query_string": query,
        "client": ("192.0.2.7", 4711),
        "headers": [(b"host", b"hello.localhost:8787"), *(headers or [])],
    }


def head(made: Scope, prefix: bytes = b"") -> list[str]:
    return RequestHead(made, LIMITS).event_head(prefix, "0123456789abcdef").split("\n")


def host_of(*values: bytes) -> str:
    hosts = [(b"host", value) for value in values]
    return RequestHead({"method": "GET", "headers": hosts}, LIMITS).host


def test_the_first_line_is_method_and_url() -> None:
    lines = head(scope(method="POST", path=b"/a%20b", query=b"x=1&y"))

    assert lines[0] == "POST http://hello.localhost:8787/a%20b?x=1&y"


def test_headers_follow_in_order_and_repeat() -> None:
    lines = head(scope([(b"accept", b"a"), (b"accept", b"b"), (b"x-empty", b"")]))

    assert lines[1:5] == ["host:hello.localhost:8787", "accept:a", "accept:b", "x-empty:"]


def test_the_client_is_told_and_cannot_lie() -> None:
    forged = [
        (b"cf-connecting-ip", b"1.1.1.1"),
        (b"x-real-ip", b"1.1.1.1"),
        (b"cf-ray", b"x"),
        (b"x-forwarded-proto", b"https"),
        (b"x-forwarded-prefix", b"/admin"),
        (b"x-forwarded-for", b"1.1.1.1"),
    ]

    lines = head(scope(forged))

    assert lines[2:] == [
        "cf-connecting-ip:192.0.2.7",
        "cf-ray:0123456789abcdef",
        "x-forwarded-for:1.1.1.1, 192.0.2.7",
        "x-forwarded-proto:http",
        "x-real-ip:192.0.2.7",
    ]


def test_hop_by_hop_headers_stay_here() -> None:
    lines = head(
        scope(
            [
                (b"connection", b"keep-alive, X-Mine"),
                (b"x-mine", b"1"),
                (b"te", b"trailers"),
                (b"transfer-encoding", b"chunked"),
                (b"upgrade", b"h2c"),
                (b"kept", b"1"),
            ]
        )
    )

    names = [line.split(":")[0] for line in lines[1:]]
    assert "kept" in names
    assert not {"connection", "x-mine", "te", "transfer-encoding", "upgrade"} & set(names)


def test_connection_cannot_name_away_the_host_or_the_length() -> None:
    lines = head(
        scope([(b"connection", b"host, content-length"), (b"content-length", b"0")], method="POST")
    )

    assert "host:hello.localhost:8787" in lines
    assert "content-length:0" in lines


def test_the_prefix_is_cut_off_and_told() -> None:
    lines = head(scope(path=b"/hello/a"), prefix=b"/hello")

    assert lines[0] == "GET http://hello.localhost:8787/a"
    assert lines[-1] == "x-forwarded-prefix:/hello"


def test_a_bare_prefix_becomes_the_root() -> None:
    assert head(scope(path=b"/hello"), prefix=b"/hello")[0].endswith(":8787/")


def test_a_double_slash_stays_on_this_host() -> None:
    lines = head(scope(path=b"/hello//evil.example/x"), prefix=b"/hello")

    assert lines[0] == "GET http://hello.localhost:8787//evil.example/x"


@pytest.mark.parametrize(
    "value",
    [b"", b"a b", b"good.example/@evil", b"user@evil", b"a:b:c", b"a\r\nx: y", b"\xff", b"a?b"],
)
def test_a_host_that_is_no_host_is_refused(value: bytes) -> None:
    with pytest.raises(BadRequest):
        host_of(value)


@pytest.mark.parametrize("count", [0, 2])
def test_exactly_one_host_is_needed(count: int) -> None:
    with pytest.raises(BadRequest, match=f"has {count} Host headers"):
        host_of(*[b"a"] * count)


@pytest.mark.parametrize("value", [b"LocalHost:80", b"127.0.0.1:8787", b"[::1]:8787", b"a_b.c"])
def test_names_and_addresses_are_hosts(value: bytes) -> None:
    assert host_of(value) == value.decode().lower()


def test_the_url_limit_counts_path_and_query() -> None:
    with pytest.raises(UrlTooLong, match="16385 bytes; the limit is 16384"):
        head(scope(path=b"/" + b"a" * 8192, query=b"b" * 8192))


def test_the_header_limit_counts_all_headers() -> None:
    with pytest.raises(HeadersTooLarge, match="the limit is 131072"):
        head(scope([(b"x", b"y" * 70_000), (b"z", b"y" * 70_000)]))


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "TRACK"])
def test_methods_that_workers_never_see(method: str) -> None:
    with pytest.raises(MethodNotAllowed):
        head(scope(method=method))


@pytest.mark.parametrize("value", [b"", b"-1", b"+5", b"5 5", b"0x5", b"9" * 5000])
def test_a_length_that_is_no_number_is_refused(value: bytes) -> None:
    with pytest.raises(BadRequest, match="Content-Length"):
        head(scope([(b"content-length", value)]))


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_no_header_can_add_a_line(name: bytes, value: bytes) -> None:
    made = scope([(name, value)])

    try:
        lines = head(made)
    except BadRequest:
        return

    assert len(lines) in (7, 8)


@pytest.mark.parametrize(
    ("method", "headers", "plan"),
    [
        ("GET", [], BodyPlan("none")),
        ("POST", [], BodyPlan("none")),
        ("GET", [(b"content-length", b"5")], BodyPlan("none")),
        ("POST", [(b"content-length", b"0")], BodyPlan("whole", 0)),
        ("POST", [(b"content-length", b"65536")], BodyPlan("whole", 65536)),
        ("POST", [(b"content-length", b"65537")], BodyPlan("stream", 65537)),
        ("PUT", [(b"transfer-encoding", b"chunked")], BodyPlan("stream")),
    ],
)
def test_how_a_body_is_read(method: str, headers: Headers, plan: BodyPlan) -> None:
    assert RequestHead(scope(headers, method=method), LIMITS).plan == plan


def test_a_length_over_the_limit_is_refused_unread() -> None:
    with pytest.raises(BodyTooLarge, match="104857601 bytes; the limit is 104857600"):
        RequestHead(scope([(b"content-length", b"104857601")], method="POST"), LIMITS)


def test_ray_ids_are_sixteen_hex_digits() -> None:
    rays = {ray_id() for _ in range(100)}

    assert len(rays) == 100
    assert all(len(ray) == 16 and int(ray, 16) >= 0 for ray in rays)
