"""What watchers do not get to see."""

import pytest

from belem.runtime.server.observability.redaction import redact_header, redact_url


@pytest.mark.parametrize(
    "name",
    ["Cookie", "set-cookie", "authorization", "x-api-key", "X-Csrf-Token", "client-secret", "jwt"],
)
def test_headers_that_may_carry_credentials_are_hidden(name: str) -> None:
    assert redact_header(name, "abc") == "REDACTED"


@pytest.mark.parametrize("name", ["host", "user-agent", "accept", "cookies-accepted"])
def test_other_headers_are_shown(name: str) -> None:
    assert redact_header(name, "abc") == "abc"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h/0123456789abcdef0123456789abcdef", "http://h/REDACTED"),
        ("http://h/01234567-89ab-cdef-0123-456789abcdef?x=1", "http://h/REDACTED?x=1"),
        ("http://h/x?key=AbCdEfGhIjKlMnOpQrS12", "http://h/x?key=REDACTED"),
        ("http://h/0123456789abcdef0123456789abcde", "http://h/0123456789abcdef0123456789abcde"),
        ("http://h/a-long-name-of-a-page-in-lower-case-2", None),
        ("http://h/AbCdEfGhIjKlMnOpQr12", None),
        ("http://h/", None),
    ],
)
def test_what_looks_like_an_id_is_hidden_in_urls(url: str, shown: str | None) -> None:
    assert redact_url(url) == (url if shown is None else shown)
