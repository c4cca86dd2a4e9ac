"""Workers AI's inputs for text generation, checked and turned into the daemon's request."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from belem.bindings.ai.errors import BAD_INPUT, LORA_UNSUPPORTED, TOO_LARGE, AIError
from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.sdk.ops import Json

__all__ = ["MAX_TEXT_BYTES", "TextGeneration", "read_inputs"]

# Text over this is refused before it is copied to the daemon. It is far over any context window
# here, and under gRPC's limit of 4 MiB for a message.
MAX_TEXT_BYTES: Final = 1 << 20
_MESSAGE_OVERHEAD_BYTES: Final = 64  # so that a million empty messages count as well

_DEFAULT_MAX_TOKENS: Final = 256
_DEFAULT_TEMPERATURE: Final = 0.6

_MAX_TOKENS_LIMIT: Final = 1 << 20  # the model's own window is the daemon's business
_ROLES: Final = ("system", "user", "assistant")
_MAX_PROBLEMS: Final = 5

# In Workers' schema, but not in this version: ignoring them would give wrong answers silently.
_UNSUPPORTED: Final = ("requests", "functions", "response_format", "tools")


@dataclass(frozen=True, slots=True)
class TextGeneration:
    """Checked inputs. `request.model` is empty: the caller knows the model."""

    request: pb.GenerateRequest
    stream: bool


def read_inputs(inputs: Json) -> TextGeneration:
    """Check the inputs of one run. Fields that the schema does not know are ignored."""
    if not isinstance(inputs, Mapping):
        raise _bad_input(f"Type mismatch of '/', 'object' not in '{_type(inputs)}'")
    _refuse_unsupported(inputs)
    request = pb.GenerateRequest()
    problems = _Problems()
    has_prompt, has_messages = "prompt" in inputs, "messages" in inputs
    if has_prompt and has_messages:
        problems.add("2 matches: '/prompt' and '/messages' are both given")
    elif has_prompt:
        _read_prompt(inputs["prompt"], request, problems)
    elif has_messages:
        _read_messages(inputs["messages"], request, problems)
    _read_numbers(inputs, request, problems)
    raw = _boolean(inputs, "raw", problems)
    request.raw = (
        raw and has_prompt
    )  # messages cannot be told from one another without the template
    stream = _boolean(inputs, "stream", problems)
    problems.refuse(has_prompt=has_prompt, has_messages=has_messages)
    return TextGeneration(request, stream)


class _Problems:
    """What is wrong with the inputs, worded as Workers' schema check words it."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        self._texts.append(text)

    def mismatch(self, path: str, wanted: str, value: Json) -> None:
        self.add(f"Type mismatch of '{path}', '{wanted}' not in '{_type(value)}'")

    @property
    def full(self) -> bool:
        return len(self._texts) >= _MAX_PROBLEMS

    def refuse(self, *, has_prompt: bool, has_messages: bool) -> None:
        missing = [
            f"required properties at '/' are '{name}'"
            for name, given in (("prompt", has_prompt), ("messages", has_messages))
            if not given
        ]
        if self._texts or len(missing) == 2:
            texts = (self._texts + missing)[: _MAX_PROBLEMS + 2]
            raise _bad_input(f"oneOf at '/' not met, 0 matches: {', '.join(texts)}")


def _refuse_unsupported(inputs: Mapping[str, Json]) -> None:
    if inputs.get("lora"):
        raise AIError(LORA_UNSUPPORTED, "The model does not support LoRA inference")
    for name in _UNSUPPORTED:
        value = inputs.get(name)
        plain_text = name == "response_format" and value == {"type": "text"}
        if value and not plain_text:
            raise _bad_input(f"'/{name}' is not supported by this version of Belem")


def _read_prompt(value: Json, request: pb.GenerateRequest, problems: _Problems) -> None:
    if not isinstance(value, str):
        problems.mismatch("/prompt", "string", value)
    elif not value:
        problems.add("Length of '/prompt' must be at least 1")
    else:
        request.prompt = _clean(value)
        _refuse_large(len(request.prompt.encode()))


def _read_messages(value: Json, request: pb.GenerateRequest, problems: _Problems) -> None:
    if not _is_array(value):
        problems.mismatch("/messages", "array", value)
        return
    messages = cast("Sequence[Json]", value)
    if not messages:
        problems.add("Length of '/messages' must be at least 1")
    total_bytes = 0
    for index, message in enumerate(messages):
        if problems.full:
            return
        path = f"/messages/{index}"
        if not isinstance(message, Mapping):
            problems.mismatch(path, "object", message)
            continue
        missing = [key for key in ("role", "content") if key not in message]
        if missing:
            problems.add(f"required properties at '{path}' are '{','.join(missing)}'")
            continue
        role = _role(message["role"], f"{path}/role", problems)
        content = _content(message["content"], f"{path}/content", problems)
        total_bytes += len(content.encode()) + _MESSAGE_OVERHEAD_BYTES
        _refuse_large(total_bytes)
        request.messages.add(role=role, content=content)


def _role(value: Json, path: str, problems: _Problems) -> str:
    if not isinstance(value, str):
        problems.mismatch(path, "string", value)
    elif value not in _ROLES:
        problems.add(f"'{path}' is '{value[:40]}', must be one of {', '.join(_ROLES)}")
    else:
        return value
    return ""


def _content(value: Json, path: str, problems: _Problems) -> str:
    """Return a message's text, which is a string or the text parts of an array."""
    if isinstance(value, str):
        return _clean(value)
    if not _is_array(value):
        problems.mismatch(path, "string", value)
        return ""
    texts: list[str] = []
    for index, part in enumerate(cast("Sequence[Json]", value)):
        kind = part.get("type") if isinstance(part, Mapping) else None
        text = part.get("text") if isinstance(part, Mapping) else None
        if kind != "text" or not isinstance(text, str):
            problems.add(f"'{path}/{index}' is not a text part, the only kind this model reads")
            return ""
        texts.append(_clean(text))
    return "".join(texts)


def _read_numbers(
    inputs: Mapping[str, Json], request: pb.GenerateRequest, problems: _Problems
) -> None:
    numbers = _Numbers(inputs, problems)
    max_tokens = numbers.whole("max_tokens", 1, _MAX_TOKENS_LIMIT)
    request.max_tokens = _DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    temperature = numbers.real("temperature", 0, 5)
    request.temperature = _DEFAULT_TEMPERATURE if temperature is None else temperature
    request.top_p = numbers.real("top_p", 0, 2) or 0.0
    request.top_k = numbers.whole("top_k", 1, 50) or 0
    seed = numbers.whole("seed", 1, 9_999_999_999)
    if seed is not None:
        request.seed = seed
    # Checked as on Workers, and without effect: the daemon has no penalties yet.
    for name in ("repetition_penalty", "frequency_penalty", "presence_penalty"):
        numbers.real(name, 0, 2)


class _Numbers:
    def __init__(self, inputs: Mapping[str, Json], problems: _Problems) -> None:
        self._inputs = inputs
        self._problems = problems

    def real(self, name: str, low: int, high: int) -> float | None:
        value = self._number(name, "number", low, high)
        return None if value is None else float(value)

    def whole(self, name: str, low: int, high: int) -> int | None:
        value = self._number(name, "integer", low, high)
        return None if value is None else int(value)

    def _number(self, name: str, wanted: str, low: int, high: int) -> float | None:
        if name not in self._inputs:
            return None
        value, path = self._inputs[name], f"/{name}"
        # JSON does not tell 256 from 256.0, nor does the schema.
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        if number is None or (wanted == "integer" and number % 1 != 0):
            self._problems.mismatch(path, wanted, value)
        elif math.isnan(number) or not low <= number <= high:
            self._problems.add(f"'{path}' is {str(value)[:40]}, must be from {low} to {high}")
        else:
            return number
        return None


def _boolean(inputs: Mapping[str, Json], name: str, problems: _Problems) -> bool:
    value = inputs.get(name, False)
    if isinstance(value, bool):
        return value
    problems.mismatch(f"/{name}", "boolean", value)
    return False


def _clean(text: str) -> str:
    """Return text that UTF-8 can encode: JSON may have lone halves of surrogate pairs."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refuse_large(size_bytes: int) -> None:
    if size_bytes > MAX_TEXT_BYTES:
        raise AIError(
            TOO_LARGE, f"Request is too large: the text is over the limit of {MAX_TEXT_BYTES} bytes"
        )


def _bad_input(text: str) -> AIError:
    return AIError(BAD_INPUT, f"Error: {text}")


def _is_array(value: Json) -> bool:
    return isinstance(value, list | tuple)


def _type(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"
