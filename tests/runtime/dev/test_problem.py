from pathlib import Path

from belem.isolates import LoadError
from belem.runtime.dev.problem import describe_problem
from belem.runtime.project import ConfigError, SourceError
from belem.sdk import SystemFault


def test_a_syntax_error_has_its_place_and_frame() -> None:
    error = SourceError("Unexpected token", file="a.ts", line=2, column=5, frame="> 2 | x y")
    error.watching([Path("/p/a.ts")])

    problem = describe_problem(error, str)

    assert (problem.title, problem.message) == ("Syntax error", "Unexpected token")
    assert (problem.place, problem.detail) == ("a.ts:2:5", "> 2 | x y")
    assert problem.watched == {Path("/p/a.ts")}


def test_a_config_error_keeps_the_files_that_may_mend_it() -> None:
    error = ConfigError("wrangler.toml: `name` is 5; it must be a text.")
    error.watching([Path("/p/wrangler.toml")])

    problem = describe_problem(error, str)

    assert "`name` is 5" in problem.message
    assert problem.watched == {Path("/p/wrangler.toml")}


def test_the_stack_of_a_top_level_error_is_mapped() -> None:
    error = LoadError("RangeError", "too far", "    at <eval> (a.js:1:1)\n")

    problem = describe_problem(error, lambda stack: stack.replace("a.js", "a.ts"))

    assert problem.message == "RangeError: too far"
    assert problem.detail == "at <eval> (a.ts:1:1)"


def test_any_other_error_is_told_as_it_is() -> None:
    problem = describe_problem(SystemFault("The disk is full."), str)

    assert problem.message == "The disk is full."
