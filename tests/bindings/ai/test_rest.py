import json
from typing import Any

import pytest

from belem.bindings.ai import AIBinding, RestAnswer, rest_run
from belem.bindings.ai.rest import MAX_BODY_BYTES
from tests.bindings.ai.daemon import FakeDaemon, stalling

MODEL = "@cf/meta/llama-3-8b-instruct"


async def post(binding: AIBinding, body: object, query: dict[str, str] | None = None) -> RestAnswer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await rest_run(binding, MODEL, content, query or {})


def envelope(answer: RestAnswer) -> Any:
    assert isinstance(answer.body, bytes)
    assert answer.headers["content-type"] == "application/json"
    return json.loads(answer.body)


async def test_rest_run_puts_the_result_into_the_envelope(
    binding: AIBinding, daemon: FakeDaemon
) -> None:
    answer = await post(binding, {"prompt": "Hello"})

    assert answer.status == 200
    assert answer.headers["x-belem-model"] == "smollm2-135m-instruct"
    assert answer.headers["cf-ai-req-id"]
    assert envelope(answer) == {
        "result": {
            "response": "The capital is Paris.",
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        },
        "success": True,
        "errors": [],
        "messages": [],
    }


async def test_rest_run_streams_without_the_envelope(
    binding: AIBinding, daemon: FakeDaemon
) -> None:
    answer = await post(binding, {"prompt": "Hello", "stream": True})

    assert not isinstance(answer.body, bytes)
    content = b"".join([chunk async for chunk in answer.body])
    assert answer.headers["content-type"] == "text/event-stream"
    assert content.startswith(b'data: {"response":"The capital"')
    assert content.endswith(b"data: [DONE]\n\n")


async def test_closing_the_body_cancels_the_generation(
    binding: AIBinding, daemon: FakeDaemon
) -> None:
    daemon.script = stalling("The capital")
    answer = await post(binding, {"prompt": "Hello", "stream": True})
    body: Any = answer.body

    await body.aclose()

    await daemon.cancelled.wait()


async def test_rest_run_reads_options_from_the_body(binding: AIBinding, daemon: FakeDaemon) -> None:
    answer = await post(binding, {"prompt": "Hello", "options": {"tags": ["with space"]}})

    assert (answer.status, envelope(answer)["errors"][0]["code"]) == (400, 5006)


@pytest.mark.parametrize(
    ("body", "query", "status", "code", "words"),
    [
        (b"", {}, 400, 3003, "Missing request body"),
        (b"{", {}, 400, 6003, "not valid JSON"),
        (b"\xff", {}, 400, 6003, "not valid JSON"),
        (b'{"prompt": NaN}', {}, 400, 6003, "NaN is not JSON"),
        (b"[" * 100_000, {}, 400, 6003, "nested too deeply"),
        (b" " * (MAX_BODY_BYTES + 1), {}, 413, 3006, f"the limit is {MAX_BODY_BYTES}"),
        (b"[1]", {}, 400, 5006, "AiError: Bad input: Error: Type mismatch of '/'"),
        (b"{}", {}, 400, 5006, "required properties at '/' are 'prompt'"),
        (
            b'{"messages": [{"role": "\\ud800", "content": "a"}]}',
            {},
            400,
            5006,
            "'/messages/0/role' is '?'",
        ),
        (b'{"prompt": "a"}', {"queueRequest": "true"}, 400, 5006, "'queueRequest' is not"),
    ],
    ids=lambda value: repr(value)[:20],
)
async def test_rest_run_refuses_with_workers_codes(
    binding: AIBinding, body: bytes, query: dict[str, str], status: int, code: int, words: str
) -> None:
    answer = await post(binding, body, query)

    content = envelope(answer)
    assert (answer.status, content["success"], content["result"]) == (status, False, {})
    assert content["errors"][0]["code"] == code
    assert words in content["errors"][0]["message"]
