"""The REST face of `run`: Cloudflare's envelope around a result, or the bare event stream."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, cast

from belem.bindings.ai.binding import AIBinding, RunAnswer
from belem.bindings.ai.errors import MISSING_BODY, TOO_LARGE, AIError
from belem.sdk.ops import Json

__all__ = ["MAX_BODY_BYTES", "RestAnswer", "rest_run"]

MAX_BODY_BYTES: Final = 4 << 20

_NOT_JSON: Final = 6003


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """What the server sends. An iterator in `body` has `aclose`, for when the client goes away."""

    status: int
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes]


async def rest_run(
    binding: AIBinding, model: str, body: bytes, query: Mapping[str, str]
) -> RestAnswer:
    """Answer `POST …/ai/run/<model>`: the body is the inputs, with `options` as one more field."""
    if not body:
        return _refusal(AIError(MISSING_BODY, "Missing request body"))
    if len(body) > MAX_BODY_BYTES:
        return _refusal(
            AIError(
                TOO_LARGE,
                f"Request is too large: the body is {len(body)} bytes, "
                f"the limit is {MAX_BODY_BYTES}",
            )
        )
    try:
        inputs = cast("Json", json.loads(body, parse_constant=_refuse_constant))
    except (ValueError, RecursionError) as error:
        text = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return _envelope(400, {}, errors=[(_NOT_JSON, f"Request body is not valid JSON: {text}")])
    options: dict[str, Json] = {}
    if isinstance(inputs, Mapping) and isinstance(given := inputs.get("options"), Mapping):
        options.update(given)
    if query.get("queueRequest", "false") != "false":
        options["queueRequest"] = True
    return _rest_answer(await binding.run(model, inputs, options))


def _rest_answer(answer: RunAnswer) -> RestAnswer:
    if answer.error is not None:
        problem = (answer.error.internal_code, answer.error.long_message)
        return _envelope(answer.status, answer.headers, errors=[problem])
    if answer.stream is not None:
        return RestAnswer(answer.status, answer.headers, answer.stream)
    return _envelope(answer.status, answer.headers, result=answer.result)


def _refusal(error: AIError) -> RestAnswer:
    return _envelope(error.http_status, {}, errors=[(error.internal_code, error.long_message)])


def _envelope(
    status: int,
    headers: Mapping[str, str],
    *,
    result: Json = None,
    errors: list[tuple[int, str]] | None = None,
) -> RestAnswer:
    content: dict[str, Json] = {
        "result": {} if result is None else result,
        "success": not errors,
        "errors": [{"code": code, "message": message} for code, message in errors or []],
        "messages": [],
    }
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return RestAnswer(status, {**headers, "content-type": "application/json"}, body)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
