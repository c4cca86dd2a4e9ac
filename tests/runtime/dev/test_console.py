import io

from rich.console import Console

from belem.runtime.dev.console import DevConsole
from belem.runtime.dev.problem import Problem


def printed(*, terminal: bool = False) -> tuple[DevConsole, io.StringIO]:
    sink = io.StringIO()
    console = Console(file=sink, force_terminal=terminal, width=200, highlight=False)
    return DevConsole(console), sink


def test_a_request_line_has_method_path_status_and_time() -> None:
    console, sink = printed()

    console.request("GET", "/a/b", 404, 12.4)

    assert sink.getvalue().endswith("] GET /a/b 404 (12 ms)\n")


def test_a_request_whose_client_left_is_marked() -> None:
    console, sink = printed()

    console.request("POST", "/", None, 3.0)

    assert "POST / closed (3 ms)" in sink.getvalue()


def test_no_colours_where_there_is_no_terminal() -> None:
    console, sink = printed()

    console.log("error", "bad")
    console.ready("http://localhost:8787")

    assert "\x1b" not in sink.getvalue()


def test_colours_on_a_terminal() -> None:
    console, sink = printed(terminal=True)

    console.log("error", "bad")

    assert "\x1b[31mbad" in sink.getvalue()


def test_a_worker_cannot_send_escape_sequences_to_the_terminal() -> None:
    console, sink = printed()

    console.log("log", "a\x1b[2Jb\nc")
    console.request("GET", "/\x1b]0;title\x07", 200, 1)

    assert "a\\x1b[2Jb\nc\n" in sink.getvalue()
    assert "\x1b" not in sink.getvalue()


def test_a_worker_may_colour_its_lines_on_a_terminal() -> None:
    console, sink = printed(terminal=True)

    console.log("log", "--> GET / \x1b[32m200\x1b[0m \x1b[2K3ms")

    assert sink.getvalue() == "--> GET / \x1b[32m200\x1b[0m \\x1b[2K3ms\n"


def test_a_workers_colours_are_left_out_where_there_is_no_terminal() -> None:
    console, sink = printed()

    console.log("log", "--> GET / \x1b[32m200\x1b[0m 3ms")

    assert sink.getvalue() == "--> GET / 200 3ms\n"


def test_markup_in_a_workers_text_is_text() -> None:
    console, sink = printed()

    console.log("log", "[red]not red[/red] [link=x]")

    assert "[red]not red[/red] [link=x]" in sink.getvalue()


def test_a_problem_shows_message_place_and_frame() -> None:
    console, sink = printed()

    console.problem(Problem("Syntax error", "Unexpected token", "src/a.ts:2:5", "> 2 | x y"))

    assert "Syntax error: Unexpected token\nsrc/a.ts:2:5\n> 2 | x y" in sink.getvalue()


def test_the_table_is_aligned() -> None:
    console, sink = printed()

    console.table([("env.AI", "inference"), ("env.CACHE_KV", "KV")])

    assert sink.getvalue() == "  env.AI        inference\n  env.CACHE_KV  KV\n"
