"""Render a model's chat template. It came with the file of weights, so it is hostile.

Jinja's sandbox keeps it from Python's internals but not from running for ever or asking for
gigabytes. So: few filters, no multiplication of texts, a limit on the output, and a deadline that
is checked at every line of the compiled template.
"""

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, TypeAlias

from jinja2 import TemplateError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from belem.runtime.inference.errors import BadRequest, BadTemplate

__all__ = ["ChatTemplate", "Message", "Rendered"]

Message: TypeAlias = Mapping[str, str]

_MAX_TEMPLATE_CHARACTERS: Final = 64 * 1024
_MAX_OUTPUT_CHARACTERS: Final = 16 << 20
_MAX_OVERHEAD: Final = 1 << 20  # what a template may add around the messages
_DEADLINE_SECONDS: Final = 2.0
_FILE_NAME: Final = "<template>"
_FILTERS: Final = frozenset(
    {
        *("capitalize", "count", "d", "default", "first", "items", "join", "last", "length"),
        *("list", "lower", "map", "reject", "rejectattr", "replace", "reverse", "select"),
        *("selectattr", "string", "title", "trim", "upper"),
    }
)
# Private use characters, one of which no text of a request will have: it marks names of control
# tokens in what users wrote, and is taken out again behind the template.
_MARKS: Final = tuple(map(chr, range(0xE000, 0xE100)))


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt, and the character in it that keeps users' text from being control tokens."""

    text: str
    mark: str


class _TooSlow(Exception):
    """The deadline passed. Not an error that a template could cause or catch."""


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%", "<<"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Allow arithmetic of small numbers only: `'a' * 10**9` is a gigabyte."""
        small = all(isinstance(value, int) and abs(value) < 1 << 20 for value in (left, right))
        if operator not in ("*", "%") or not small:
            raise SecurityError(f"the operator {operator} is for small numbers only")
        return super().call_binop(context, operator, left, right)


class ChatTemplate:
    """A compiled template. Rendering blocks for up to two seconds: keep it off the event loop."""

    def __init__(
        self,
        source: str,
        control: Sequence[str],
        *,
        variables: Mapping[str, str] | None = None,
        deadline_seconds: float = _DEADLINE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if len(source) > _MAX_TEMPLATE_CHARACTERS:
            raise BadTemplate(
                f"The chat template has {len(source)} characters; the limit is "
                f"{_MAX_TEMPLATE_CHARACTERS}."
            )
        environment = _Environment(trim_blocks=True, lstrip_blocks=True, optimized=False)
        environment.filters = {k: v for k, v in environment.filters.items() if k in _FILTERS}
        # The sandbox's range, which has a limit, and nothing else of Jinja's.
        available: dict[str, Any] = environment.globals  # typed as what Jinja itself puts there
        allowed = {"range": available["range"], "raise_exception": _raise_exception}
        available.clear()
        available.update(allowed)
        try:
            self._template = environment.from_string(source)
        except (TemplateError, RecursionError, OverflowError, SyntaxError) as error:
            raise BadTemplate(f"The model's chat template is wrong: {error}") from error
        names = sorted((name for name in control if len(name) > 1), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, names)) or r"(?!)")
        self._variables = dict(variables or {})
        self._deadline_seconds = deadline_seconds
        self._clock = clock

    def render(self, messages: Sequence[Message]) -> Rendered:
        """Return the prompt for the next answer of the assistant."""
        given = "".join(message["content"] for message in messages)
        mark = next((mark for mark in _MARKS if mark not in given), None)
        if mark is None:
            raise BadRequest("The messages use all private characters; at least one must be free.")
        disarmed = [
            {"role": message["role"], "content": self._disarm(message["content"], mark)}
            for message in messages
        ]
        limit = min(_MAX_OUTPUT_CHARACTERS, 4 * len(given) + _MAX_OVERHEAD)
        deadline = self._clock() + self._deadline_seconds
        before = sys.gettrace()
        sys.settrace(self._watch(deadline))
        try:
            text = self._collect(disarmed, limit)
        except _TooSlow as error:
            raise BadTemplate(
                f"The model's chat template ran for over {self._deadline_seconds:g} seconds."
            ) from error
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise BadTemplate(f"The model's chat template failed: {error}") from error
        except (MemoryError, RecursionError) as error:
            raise BadTemplate("The model's chat template took too much memory.") from error
        finally:
            sys.settrace(before)
        return Rendered(text, mark)

    def _disarm(self, text: str, mark: str) -> str:
        """Break the names of control tokens that a user wrote, those that overlap as well."""
        while self._control.search(text):
            text = self._control.sub(lambda match: match[0][0] + mark + match[0][1:], text)
        return text

    def _collect(self, messages: Sequence[Message], limit: int) -> str:
        pieces: list[str] = []
        size = 0
        context = {**self._variables, "messages": messages, "add_generation_prompt": True}
        for piece in self._template.generate(context):
            size += len(piece)
            if size > limit:
                raise BadTemplate(
                    f"The model's chat template made over {limit} characters of {len(messages)} "
                    "messages."
                )
            pieces.append(piece)
        return "".join(pieces)

    def _watch(self, deadline: float) -> Callable[[FrameType, str, Any], Any]:
        def watch(frame: FrameType, event: str, argument: Any) -> Any:
            if frame.f_code.co_filename != _FILE_NAME:
                return None  # our own code and Jinja's: it ends by itself
            if self._clock() > deadline:
                raise _TooSlow
            return watch

        return watch


def _raise_exception(message: object) -> None:
    raise TemplateError(str(message)[:200])
