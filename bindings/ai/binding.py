"""`env.AI`: run a model, list the models. The same `run` serves guests and the REST API."""

import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from belem.bindings.ai.client import Generation, InferenceClient
from belem.bindings.ai.errors import BAD_INPUT, NO_SUCH_MODEL, AIError
from belem.bindings.ai.events import EventStream, usage
from belem.bindings.ai.models import list_models
from belem.bindings.ai.text_generation import read_inputs
from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.sdk.ops import Answer, Call, Json, Rejection

__all__ = ["AIBinding", "RunAnswer"]

_MAX_MODEL_NAME_CHARACTERS: Final = 256
_SHOWN_CHARACTERS: Final = 40
_MAX_TAGS: Final = 5
_TAG: Final = re.compile(r"[A-Za-z0-9:\-./@]{1,50}")

# Options of `run` that change what comes back, and that this version does not have.
_UNSUPPORTED_OPTIONS: Final = ("queueRequest", "websocket")


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """One answer of a model as an HTTP response would carry it.

    It has exactly one of `result` (a JSON object), `stream` (server-sent events) and `error`.
    """

    status: int
    headers: Mapping[str, str]
    result: Mapping[str, Json] | None = None
    stream: AsyncIterator[bytes] | None = None
    error: AIError | None = None


class AIBinding:
    """The host half of the AI binding. It satisfies the isolates' `Capability`."""

    def __init__(self, client: InferenceClient) -> None:
        self._client = client

    async def __call__(self, call: Call, /) -> Answer:
        """Answer a host op: `run` with {model, inputs, options}, or `models` with the search."""
        args: Mapping[str, Json] = call.args if isinstance(call.args, Mapping) else {}
        match call.method:
            case "run":
                answer = await self.run(
                    args.get("model"), args.get("inputs"), args.get("options") or {}
                )
                return _op_answer(answer)
            case "models":
                try:
                    return Answer(await list_models(self._client, args))
                except AIError as error:
                    raise Rejection(str(error), name=error.name) from error
            case _:
                raise Rejection(f"AI has no method {call.method[:40]!r}.", name="TypeError")

    async def run(self, model: Json, inputs: Json, options: Json) -> RunAnswer:
        """Run a model. Errors are answers too: a raw response carries them instead of throwing."""
        headers = {"cf-ai-req-id": str(uuid.uuid4()), "content-type": "application/json"}
        try:
            _check_options(options)
            task = read_inputs(inputs)
            task.request.model = _model_name(model)
            generation = await self._client.generate(task.request)
            headers["x-belem-model"] = generation.served_by
            if task.stream:
                headers["content-type"] = "text/event-stream"
                headers["cache-control"] = "no-cache"
                return RunAnswer(200, headers, stream=EventStream(generation))
            return RunAnswer(200, headers, result=await _whole(generation))
        except AIError as error:
            headers["content-type"] = "application/json"
            return RunAnswer(error.http_status, headers, error=error)


async def _whole(generation: Generation) -> dict[str, Json]:
    texts: list[str] = []
    try:
        async for event in generation:
            if isinstance(event, pb.Finished):
                return {"response": "".join(texts), "usage": usage(event)}
            texts.append(event.text)
    finally:
        await generation.aclose()
    raise AssertionError("a generation ends with Finished or an error")


def _op_answer(answer: RunAnswer) -> Answer:
    head: dict[str, Json] = {"status": answer.status, "headers": answer.headers}
    if answer.error is not None:
        head["error"] = answer.error.body()
    elif answer.stream is not None:
        return Answer(head, answer.stream)
    else:
        head["result"] = answer.result
    return Answer(head)


def _model_name(model: Json) -> str:
    if not isinstance(model, str) or not 0 < len(model) <= _MAX_MODEL_NAME_CHARACTERS:
        shown = "null" if model is None else str(model)[:_SHOWN_CHARACTERS]
        raise AIError(NO_SUCH_MODEL, f"No such model {shown} or task")
    return model.encode(errors="replace").decode()


def _check_options(options: Json) -> None:
    if not isinstance(options, Mapping):
        raise AIError(BAD_INPUT, "Error: the options of run() must be an object")
    for name in _UNSUPPORTED_OPTIONS:
        if options.get(name):
            raise AIError(
                BAD_INPUT, f"Error: the option '{name}' is not supported by this version of Belem"
            )
    tags = options.get("tags")
    if tags is not None:
        _check_tags(tags)


def _check_tags(tags: Json) -> None:
    if not isinstance(tags, list | tuple):
        raise AIError(BAD_INPUT, "Error: the option 'tags' must be an array of strings")
    unique = {tag for tag in cast("Sequence[Json]", tags) if isinstance(tag, str)}
    if len(unique) > _MAX_TAGS:
        raise AIError(BAD_INPUT, f"Error: {len(unique)} tags are given; the limit is {_MAX_TAGS}")
    for tag in cast("Sequence[Json]", tags):
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise AIError(
                BAD_INPUT,
                f"Error: {str(tag)[:60]!r} is not a tag: 1 to 50 letters, digits and : - . / @",
            )
