import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc
import pytest

from belem.bindings.ai import AIBinding, InferenceClient, RunAnswer
from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.sdk.ops import Call, Json, Rejection
from tests.bindings.ai.daemon import (
    Context,
    FakeDaemon,
    finished,
    refusing,
    saying,
    stalling,
    started,
    text,
)

MODEL = "@cf/meta/llama-3-8b-instruct"


async def run(
    binding: AIBinding, inputs: Json, *, model: Json = MODEL, options: Json = None
) -> RunAnswer:
    return await binding.run(model, inputs, {} if options is None else options)


def events(content: bytes) -> list[Any]:
    """Read a finished event stream strictly: every event is one `data: ` line and an empty one."""
    assert content.endswith(b"\n\n")
    lines = content.decode().removesuffix("\n\n").split("\n\n")
    assert all(line.startswith("data: ") and "\n" not in line for line in lines)
    return [
        data if data == "[DONE]" else json.loads(data)
        for data in (line.removeprefix("data: ") for line in lines)
    ]


async def read(answer: RunAnswer) -> list[Any]:
    assert answer.stream is not None
    return events(b"".join([chunk async for chunk in answer.stream]))


async def test_run_answers_with_text_and_usage(binding: AIBinding, daemon: FakeDaemon) -> None:
    answer = await run(binding, {"prompt": "Hello", "max_tokens": 9})

    assert answer.status == 200
    assert answer.result == {
        "response": "The capital is Paris.",
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-belem-model"] == "smollm2-135m-instruct"
    assert (daemon.requests[0].model, daemon.requests[0].max_tokens) == (MODEL, 9)


async def test_every_run_has_its_own_request_id(binding: AIBinding, daemon: FakeDaemon) -> None:
    answers = [await run(binding, {"prompt": "Hello"}), await run(binding, {})]

    ids = {answer.headers["cf-ai-req-id"] for answer in answers}
    assert len(ids) == 2


async def test_run_tells_what_a_prefix_cache_saved(binding: AIBinding, daemon: FakeDaemon) -> None:
    async def script(_: pb.GenerateRequest, __: Context) -> AsyncIterator[pb.GenerateReply]:
        yield started()
        yield finished(0, cached_tokens=5)

    daemon.script = script

    answer = await run(binding, {"prompt": "Hello"})

    assert answer.result is not None
    usage = answer.result["usage"]
    assert isinstance(usage, Mapping)
    assert usage["prompt_tokens_details"] == {"cached_tokens": 5}


async def test_run_streams_events_as_workers_does(binding: AIBinding, daemon: FakeDaemon) -> None:
    answer = await run(binding, {"prompt": "Hello", "stream": True})

    *pieces, last, done = await read(answer)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-belem-model"] == "smollm2-135m-instruct"
    assert [piece["response"] for piece in pieces] == ["The capital", " is", " Paris."]
    assert all(1 <= len(piece["p"]) <= 36 for piece in pieces)
    assert last["response"] == ""
    assert last["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert done == "[DONE]"


async def test_run_keeps_line_breaks_and_unicode_inside_one_event(
    binding: AIBinding, daemon: FakeDaemon
) -> None:
    daemon.script = saying("a\n\ndata: [DONE]\n\n", "\u2028é\U0001f600")

    answer = await run(binding, {"prompt": "Hello", "stream": True})

    pieces = [event["response"] for event in (await read(answer))[:-2]]
    assert pieces == ["a\n\ndata: [DONE]\n\n", "\u2028é\U0001f600"]


async def test_a_stream_is_sent_as_it_comes(binding: AIBinding, daemon: FakeDaemon) -> None:
    daemon.script = stalling("The capital")

    answer = await run(binding, {"prompt": "Hello", "stream": True})

    assert answer.stream is not None
    assert b'"response":"The capital"' in await anext(answer.stream)


async def test_closing_a_stream_cancels_the_generation(
    binding: AIBinding, daemon: FakeDaemon
) -> None:
    daemon.script = stalling("The capital")
    answer = await binding(Call("run", {"model": MODEL, "inputs": {"prompt": "a", "stream": True}}))
    stream: Any = answer.body
    await anext(stream)

    await stream.aclose()

    await daemon.cancelled.wait()
    assert [chunk async for chunk in stream] == []


async def test_closing_a_stream_that_nobody_read_cancels_the_generation(
    binding: AIBinding, daemon: FakeDaemon
) -> None:
    daemon.script = stalling("The capital")
    answer = await binding(Call("run", {"model": MODEL, "inputs": {"prompt": "a", "stream": True}}))
    stream: Any = answer.body

    await stream.aclose()

    await daemon.cancelled.wait()


async def test_a_daemon_that_dies_in_mid_stream_ends_it_without_done(
    binding: AIBinding, daemon: FakeDaemon
) -> None:
    daemon.script = stalling("The capital")
    answer = await run(binding, {"prompt": "Hello", "stream": True})
    assert answer.stream is not None
    chunks = [await anext(answer.stream)]

    await daemon.stop()
    chunks += [chunk async for chunk in answer.stream]

    first, last = events(b"".join(chunks))
    assert first["response"] == "The capital"
    assert last["error"]["code"] == 5012
    assert "The inference daemon went away" in last["error"]["message"]


async def test_a_daemon_that_dies_in_mid_answer_is_an_error(
    binding: AIBinding, daemon: FakeDaemon
) -> None:
    async def script(_: pb.GenerateRequest, __: Context) -> AsyncIterator[pb.GenerateReply]:
        yield started()
        yield text("The capital")
        await daemon.stop()

    daemon.script = script

    answer = await run(binding, {"prompt": "Hello"})

    assert (answer.status, answer.result) == (529, None)
    assert answer.error is not None
    assert "went away" in str(answer.error)


@pytest.mark.parametrize(
    ("status", "details", "code", "message", "http_status"),
    [
        (grpc.StatusCode.NOT_FOUND, "No such model @cf/x/y or task", "5007", None, 400),
        (
            grpc.StatusCode.OUT_OF_RANGE,
            "The estimated number of input and maximum output tokens (9000) exceeded this model "
            "context window limit (8192)",
            "5021",
            None,
            413,
        ),
        (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "queue is full",
            None,
            "3040: Capacity temporarily exceeded, please try again.",
            429,
        ),
        (grpc.StatusCode.ABORTED, "secret", None, "3008: Request was aborted", 408),
        (grpc.StatusCode.INTERNAL, "secret", None, "3043: Internal server error", 500),
    ],
)
async def test_a_refusal_of_the_daemon_is_workers_error(
    binding: AIBinding,
    daemon: FakeDaemon,
    status: grpc.StatusCode,
    details: str,
    code: str | None,
    message: str | None,
    http_status: int,
) -> None:
    daemon.script = refusing(status, details, code=code)

    answer = await run(binding, {"prompt": "Hello", "stream": True})

    assert answer.stream is None
    assert answer.headers["content-type"] == "application/json"
    assert (answer.status, str(answer.error)) == (http_status, message or f"{code}: {details}")


@pytest.mark.parametrize("model", [None, 7, "", "x" * 257, ["@cf/meta/llama-3-8b-instruct"]])
async def test_a_model_that_is_no_name_is_unknown(binding: AIBinding, model: Json) -> None:
    answer = await run(binding, {"prompt": "Hello"}, model=model)

    assert answer.error is not None
    assert answer.error.internal_code == 5007
    assert "No such model" in answer.error.description


async def test_options_that_mean_nothing_here_are_taken(
    binding: AIBinding, daemon: FakeDaemon
) -> None:
    options: Json = {
        "gateway": {"id": "mine"},
        "extraHeaders": {"x-session-affinity": "a"},
        "rejectIfBusy": True,
        "tags": ["team:search", "a.b/c@d-e"],
        "queueRequest": False,
    }

    assert (await run(binding, {"prompt": "Hello"}, options=options)).status == 200


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("fast", "options of run() must be an object"),
        ({"websocket": True}, "'websocket' is not supported"),
        ({"queueRequest": True}, "'queueRequest' is not supported"),
        ({"tags": "one"}, "must be an array"),
        ({"tags": ["a", "b", "c", "d", "e", "f"]}, "6 tags are given; the limit is 5"),
        ({"tags": ["with space"]}, "'with space' is not a tag"),
        ({"tags": ["x" * 51]}, "is not a tag"),
        ({"tags": [7]}, "'7' is not a tag"),
    ],
)
async def test_wrong_options_are_refused(binding: AIBinding, options: Json, problem: str) -> None:
    answer = await run(binding, {"prompt": "Hello"}, options=options)

    assert answer.error is not None
    assert answer.error.internal_code == 5006
    assert problem in answer.error.description


async def test_tags_given_twice_count_once(binding: AIBinding, daemon: FakeDaemon) -> None:
    answer = await run(binding, {"prompt": "Hello"}, options={"tags": ["a"] * 9})

    assert answer.status == 200


async def test_the_op_run_answers_with_a_head(binding: AIBinding, daemon: FakeDaemon) -> None:
    answer = await binding(Call("run", {"model": MODEL, "inputs": {"prompt": "Hello"}}))

    head = answer.value
    assert isinstance(head, Mapping)
    assert (head["status"], answer.body) == (200, None)
    assert head["result"] == {
        "response": "The capital is Paris.",
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


async def test_the_op_run_answers_an_error_with_a_head(binding: AIBinding) -> None:
    answer = await binding(Call("run", {"model": MODEL, "inputs": {}}))

    head = answer.value
    assert isinstance(head, Mapping)
    error = head["error"]
    assert isinstance(error, Mapping)
    assert (head["status"], error["name"], error["internalCode"]) == (400, "AiError", 5006)


@pytest.mark.parametrize("args", [None, [], "run", {"model": MODEL}])
async def test_a_hostile_op_is_an_error_and_no_more(binding: AIBinding, args: Json) -> None:
    answer = await binding(Call("run", args))

    head = answer.value
    assert isinstance(head, Mapping)
    assert head["status"] == 400


async def test_an_unknown_op_is_rejected(binding: AIBinding) -> None:
    with pytest.raises(Rejection, match="AI has no method 'fly'"):
        await binding(Call("fly", None))


async def test_the_op_models_rejects_when_the_daemon_is_away(address: str) -> None:
    async with InferenceClient(address, connect_timeout_seconds=0.05) as client:
        with pytest.raises(Rejection, match="5012: ") as caught:
            await AIBinding(client)(Call("models", {}))

    assert caught.value.name == "AiError"
