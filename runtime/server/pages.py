"""Error pages: HTML for a browser, JSON where it is asked for, else a few lines of text."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from belem.runtime.server.failures import Failure

__all__ = ["Explanation", "Page", "render"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the worker's code said, for its developer; the stack names the sources."""

    name: str
    message: str
    stack: str = ""
    excerpt: str = ""  # the source lines around the place, if known


@dataclass(frozen=True, slots=True)
class Page:
    """A rendered page, ready to send."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def render(
    failure: Failure, *, ray: str, accept: bytes, explanation: Explanation | None = None
) -> Page:
    """Render `failure` in the form that the Accept header asks for."""
    accepted = _media_types(accept)
    if "text/html" in accepted:
        kind, text = "text/html", _html(failure, ray, explanation)
    elif "application/json" in accepted:
        kind, text = "application/json", _json(failure, ray, explanation)
    else:
        kind, text = "text/plain", _text(failure, ray, explanation)
    body = text.encode("utf-8", "replace")
    headers = [
        (b"content-type", f"{kind}; charset=utf-8".encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"cf-ray", ray.encode()),
    ]
    return Page(failure.status, headers, body)


def _media_types(accept: bytes) -> set[str]:
    return {part.partition(";")[0].strip().lower() for part in accept.decode("latin-1").split(",")}


@cache
def _template() -> Template:
    source = files("belem.runtime.server").joinpath("page.html").read_text(encoding="utf-8")
    return Template(source)


def _html(failure: Failure, ray: str, explanation: Explanation | None) -> str:
    code = failure.error_code if failure.error_code is not None else failure.status
    return _template().substitute(
        title=escape(failure.title),
        label="Error" if failure.error_code is not None else "Status",
        code=code,
        happened=escape(failure.happened),
        advice=escape(failure.advice),
        ray=escape(ray),
        detail=_detail(explanation),
    )


def _detail(explanation: Explanation | None) -> str:
    if explanation is None:
        return ""
    parts: Iterable[str] = (
        f'<h2 class="thrown">{escape(explanation.name)}: {escape(explanation.message)}</h2>',
        f'<pre class="excerpt">{escape(explanation.excerpt)}</pre>' if explanation.excerpt else "",
        f"<pre>{escape(explanation.stack)}</pre>" if explanation.stack else "",
    )
    return "".join(parts)


def _json(failure: Failure, ray: str, explanation: Explanation | None) -> str:
    error: dict[str, object] = {
        "code": failure.error_code or failure.status,
        "title": failure.title,
        "message": failure.happened,
        "advice": failure.advice,
        "ray_id": ray,
    }
    if explanation is not None:
        error["thrown"] = {
            "name": explanation.name,
            "message": explanation.message,
            "stack": explanation.stack,
        }
    return json.dumps({"error": error}, ensure_ascii=False) + "\n"


def _text(failure: Failure, ray: str, explanation: Explanation | None) -> str:
    first = (
        f"error code: {failure.error_code} {failure.title}"
        if failure.error_code is not None
        else failure.title
    )
    lines = [first, failure.happened, failure.advice, f"ray id: {ray}"]
    if explanation is not None:
        lines += ["", f"{explanation.name}: {explanation.message}"]
        lines += [text for text in (explanation.excerpt, explanation.stack) if text]
    return "\n".join(lines) + "\n"
