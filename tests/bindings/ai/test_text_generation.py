from typing import Any

import pytest
from hypothesis import given, strategies

from belem.bindings.ai.errors import AIError
from belem.bindings.ai.text_generation import MAX_TEXT_BYTES, read_inputs

Inputs = Any  # what a worker may send: JSON, right or wrong


def refusal(inputs: Inputs) -> AIError:
    with pytest.raises(AIError) as caught:
        read_inputs(inputs)
    return caught.value


def test_read_inputs_gives_workers_defaults() -> None:
    task = read_inputs({"prompt": "Hello"})

    request = task.request
    assert (request.prompt, request.max_tokens, request.temperature) == ("Hello", 256, 0.6)
    assert (request.top_p, request.top_k, request.raw) == (0.0, 0, False)
    assert not request.HasField("seed")
    assert not task.stream


def test_read_inputs_takes_every_field() -> None:
    task = read_inputs(
        {
            "prompt": "Hello", "max_tokens": 5, "temperature": 0, "top_p": 0.9, "top_k": 40,
            "seed": 9_999_999_999, "raw": True, "stream": True, "repetition_penalty": 1.1,
        }
    )  # fmt: skip

    request = task.request
    assert (request.max_tokens, request.temperature, request.top_p) == (5, 0.0, 0.9)
    assert (request.top_k, request.seed, request.raw) == (40, 9_999_999_999, True)
    assert task.stream


def test_read_inputs_takes_messages_and_joins_text_parts() -> None:
    parts: Inputs = [{"type": "text", "text": "Hello "}, {"type": "text", "text": "you"}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]

    request = read_inputs({"messages": messages}).request

    assert [(message.role, message.content) for message in request.messages] == [
        ("system", "Be brief."),
        ("user", "Hello you"),
    ]
    assert not request.HasField("prompt")


def test_read_inputs_ignores_unknown_fields_and_raw_beside_messages() -> None:
    messages = [{"role": "user", "content": "Hello"}]

    request = read_inputs({"messages": messages, "raw": True, "nonsense": [1, 2]}).request

    assert not request.raw


def test_read_inputs_takes_whole_numbers_written_as_reals() -> None:
    assert read_inputs({"prompt": "Hello", "max_tokens": 12.0}).request.max_tokens == 12


def test_read_inputs_takes_plain_text_as_response_format() -> None:
    inputs: Inputs = {"prompt": "Hello", "response_format": {"type": "text"}, "tools": []}

    assert read_inputs(inputs).request.prompt == "Hello"


def test_read_inputs_replaces_lone_surrogates() -> None:
    request = read_inputs({"prompt": "a\ud800b \U0001f600"}).request

    assert request.prompt == "a\ufffdb \U0001f600"


NO_PROMPT = "required properties at '/' are 'prompt'"
NO_MESSAGES = "required properties at '/' are 'messages'"


WRONG: list[tuple[Inputs, str]] = [
    ({}, f"oneOf at '/' not met, 0 matches: {NO_PROMPT}, {NO_MESSAGES}"),
    ({"stream": True}, NO_PROMPT),
    (None, "Type mismatch of '/', 'object' not in 'null'"),
    ([], "Type mismatch of '/', 'object' not in 'array'"),
    ({"prompt": "a", "messages": []}, "'/prompt' and '/messages' are both given"),
    ({"prompt": 7}, f"Type mismatch of '/prompt', 'string' not in 'integer', {NO_MESSAGES}"),
    ({"prompt": None}, "Type mismatch of '/prompt', 'string' not in 'null'"),
    ({"prompt": ""}, "Length of '/prompt' must be at least 1"),
    ({"messages": {}}, "Type mismatch of '/messages', 'array' not in 'object'"),
    ({"messages": []}, "Length of '/messages' must be at least 1"),
    ({"messages": ["hi"]}, "Type mismatch of '/messages/0', 'object' not in 'string'"),
    ({"messages": [{"role": "user"}]}, "required properties at '/messages/0' are 'content'"),
    ({"messages": [{}]}, "required properties at '/messages/0' are 'role,content'"),
    (
        {"messages": [{"role": "assistant", "content": None}]},
        "Type mismatch of '/messages/0/content', 'string' not in 'null'",
    ),
    (
        {"messages": [{"role": "tool", "content": "a"}]},
        "'/messages/0/role' is 'tool', must be one of system, user, assistant",
    ),
    (
        {"messages": [{"role": 1, "content": "a"}]},
        "Type mismatch of '/messages/0/role', 'string' not in 'integer'",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "'/messages/0/content/0' is not a text part",
    ),
    (
        {"prompt": "a", "max_tokens": None},
        "Type mismatch of '/max_tokens', 'integer' not in 'null'",
    ),
    ({"prompt": "a", "max_tokens": "9"}, "'/max_tokens', 'integer' not in 'string'"),
    ({"prompt": "a", "max_tokens": 1.5}, "'/max_tokens', 'integer' not in 'number'"),
    ({"prompt": "a", "max_tokens": True}, "'/max_tokens', 'integer' not in 'boolean'"),
    ({"prompt": "a", "max_tokens": 0}, "'/max_tokens' is 0, must be from 1 to"),
    ({"prompt": "a", "max_tokens": 10**30}, "must be from 1 to"),
    ({"prompt": "a", "temperature": 5.1}, "'/temperature' is 5.1, must be from 0 to 5"),
    ({"prompt": "a", "temperature": float("nan")}, "'/temperature' is nan, must be"),
    ({"prompt": "a", "temperature": float("inf")}, "'/temperature' is inf, must be"),
    ({"prompt": "a", "top_p": -1}, "'/top_p' is -1, must be from 0 to 2"),
    ({"prompt": "a", "top_k": 51}, "'/top_k' is 51, must be from 1 to 50"),
    ({"prompt": "a", "seed": 0}, "'/seed' is 0, must be from 1 to 9999999999"),
    ({"prompt": "a", "presence_penalty": 3}, "'/presence_penalty' is 3, must be from 0 to 2"),
    ({"prompt": "a", "stream": "yes"}, "Type mismatch of '/stream', 'boolean' not in 'string'"),
    ({"prompt": "a", "raw": 1}, "Type mismatch of '/raw', 'boolean' not in 'integer'"),
    ({"requests": [{"prompt": "a"}]}, "'/requests' is not supported"),
    ({"prompt": "a", "tools": [{}]}, "'/tools' is not supported"),
    (
        {"prompt": "a", "response_format": {"type": "json_object"}},
        "'/response_format' is not supported",
    ),
]


@pytest.mark.parametrize(("inputs", "problem"), WRONG)
def test_read_inputs_names_what_is_wrong(inputs: Inputs, problem: str) -> None:
    error = refusal(inputs)

    assert (error.internal_code, error.http_status) == (5006, 400)
    assert problem in error.description


def test_read_inputs_names_several_problems_but_not_all() -> None:
    messages: Inputs = [{"role": "user", "content": None}] * 100

    error = refusal({"messages": messages})

    assert "/messages/4/content" in error.description
    assert "/messages/5/content" not in error.description


def test_read_inputs_refuses_lora_with_workers_code() -> None:
    error = refusal({"prompt": "a", "lora": "mine"})

    assert (error.internal_code, error.http_status) == (5005, 405)


@pytest.mark.parametrize(
    "inputs",
    [
        {"prompt": "a" * (MAX_TEXT_BYTES + 1)},
        {"prompt": "é" * (MAX_TEXT_BYTES // 2 + 1)},
        {"messages": [{"role": "user", "content": "a" * (MAX_TEXT_BYTES // 2)}] * 3},
        {"messages": [{"role": "user", "content": ""}] * 20_000},
    ],
)
def test_read_inputs_refuses_large_text(inputs: Inputs) -> None:
    error = refusal(inputs)

    assert (error.internal_code, error.http_status) == (3006, 413)
    assert str(MAX_TEXT_BYTES) in error.description


FIELDS = strategies.sampled_from(
    [
        "prompt",
        "messages",
        "role",
        "content",
        "type",
        "text",
        "max_tokens",
        "seed",
        "stream",
        "lora",
    ]
)
JSON_VALUES = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(FIELDS, inner),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_read_inputs_either_takes_or_refuses_any_json(inputs: Inputs) -> None:
    code = 0
    try:
        read_inputs(inputs).request.SerializeToString()
    except AIError as error:
        code = error.internal_code

    assert code in (0, 5005, 5006, 3006)
