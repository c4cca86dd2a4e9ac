"""The page that stands in for a worker that does not run, and reloads when it is mended."""

from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from belem.runtime.dev.problem import Problem

__all__ = ["EVENTS_PATH", "render_html", "render_text"]

EVENTS_PATH: Final = "/cdn-cgi/local/reload"


def render_html(problem: Problem, worker: str) -> bytes:
    """Render the page for a browser."""
    place = f'<p class="place"><code>{escape(problem.place)}</code></p>' if problem.place else ""
    detail = f"<pre>{escape(problem.detail)}</pre>" if problem.detail else ""
    page = _template().substitute(
        title=escape(problem.title),
        worker=escape(worker),
        message=escape(problem.message),
        place=place,
        detail=detail,
        events=EVENTS_PATH,
    )
    return page.encode()


def render_text(problem: Problem) -> bytes:
    """Render the same for curl and for code."""
    parts = (f"{problem.title}: {problem.message}", problem.place, problem.detail)
    return ("\n".join(part for part in parts if part) + "\n").encode()


@cache
def _template() -> Template:
    source = files("belem.runtime.dev").joinpath("overlay.html").read_text(encoding="utf-8")
    return Template(source)
