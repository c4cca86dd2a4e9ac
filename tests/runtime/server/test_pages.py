import json

from belem.isolates import GuestThrew
from belem.runtime.server.errors import NoSuchWorker
from belem.runtime.server.failures import describe
from belem.runtime.server.pages import Explanation, render

THREW = describe(GuestThrew("TypeError", "secret detail"))
RAY = "0123456789abcdef"


def test_a_browser_gets_html_with_code_and_ray() -> None:
    page = render(THREW, ray=RAY, accept=b"text/html,application/xhtml+xml;q=0.9")

    headers = dict(page.headers)
    assert page.status == 500
    assert headers[b"content-type"] == b"text/html; charset=utf-8"
    assert headers[b"content-length"] == str(len(page.body)).encode()
    assert b"1101" in page.body
    assert RAY.encode() in page.body
    assert b"secret detail" not in page.body


def test_a_program_gets_json() -> None:
    page = render(THREW, ray=RAY, accept=b"application/json")

    assert json.loads(page.body)["error"]["code"] == 1101


def test_anything_else_gets_text_that_begins_as_on_workers() -> None:
    page = render(THREW, ray=RAY, accept=b"*/*")

    assert page.body.startswith(b"error code: 1101")


def test_an_explanation_is_shown_and_escaped() -> None:
    explanation = Explanation(
        "TypeError", "<script>alert(1)</script>", "at src/a.ts:3:1", "> 3 | x"
    )

    page = render(THREW, ray=RAY, accept=b"text/html", explanation=explanation)

    assert b"<script>" not in page.body
    assert b"&lt;script&gt;" in page.body
    assert b"at src/a.ts:3:1" in page.body


def test_a_placeholder_in_a_message_is_only_text() -> None:
    explanation = Explanation("Error", "$title ${ray} %s {0}")

    page = render(THREW, ray=RAY, accept=b"text/html", explanation=explanation)

    assert b"$title ${ray} %s {0}" in page.body


def test_a_status_without_a_workers_code_is_shown_as_one() -> None:
    page = render(describe(NoSuchWorker("x")), ray=RAY, accept=b"text/html")

    assert page.status == 404
    assert b"Status 404" in page.body
    assert b"There is nothing here yet" in page.body
