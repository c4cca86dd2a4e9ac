"""`env.AI` as a worker meets it: real engine, both halves of the binding, a scripted daemon."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from belem.bindings import ai
from belem.bindings.ai import AIBinding
from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.isolates import Event, Host, Limits, Program, Reply, Script
from belem.isolates.guests.js import javascript
from belem.sdk.ops import Answer, Call, Json
from tests.bindings.ai.daemon import FakeDaemon, refusing, stalling

GUEST_HALF = Script("belem:ai", Path(ai.__file__).with_name("guest.js").read_text())

# Lets a worker wait until the daemon has its request.
GATE = Script(
    "test:gate",
    """{
        const { defineBinding, op } = globalThis.__belem;
        defineBinding("gate", ({ name }) => ({ daemonAsked: () => op(name, "wait", null) }));
    }""",
)
BINDINGS: Json = [{"name": "AI", "type": "ai"}, {"name": "GATE", "type": "gate"}]

Run = Callable[[str], Awaitable[Reply]]
Ask = Callable[[str], Awaitable[Any]]


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("code") / "cache"


@pytest.fixture
async def run(binding: AIBinding, daemon: FakeDaemon, cache_dir: Path) -> AsyncIterator[Run]:
    """Give the body of a fetch handler to run, with `env` and the model's name in reach."""
    async with Host(cache_dir, max_isolates=4) as host:
        guest = javascript(extensions=[GUEST_HALF, GATE])
        limits = Limits()

        async def gate(_: Call) -> Answer:
            await daemon.asked.wait()
            return Answer()

        async def start(body: str) -> Reply:
            source = (
                'const MODEL = "@cf/meta/llama-3-8b-instruct";'
                f"export default {{ async fetch(request, env) {{ {body} }} }};"
            )
            program = Program(
                main="worker.js",
                modules={"worker.js": source},
                configuration={"bindings": BINDINGS, "vars": {}},
            )
            image = await host.build(guest, program, limits)
            isolate = host.spawn(image, {"ai:AI": binding, "GATE": gate}, limits, lambda _: None)
            return await isolate.dispatch(Event("fetch", "GET http://worker.test/\n"))

        yield start


@pytest.fixture
def ask(run: Run) -> Ask:
    """Run a handler's body that returns any value, and give that value."""

    async def answer(body: str) -> Any:
        reply = await run(f"return Response.json(await (async () => {{ {body} }})() ?? null);")
        assert reply.head.startswith("200 "), reply.head
        return json.loads(await content(reply))

    return answer


async def content(reply: Reply) -> bytes:
    if reply.body is None or isinstance(reply.body, bytes):
        return reply.body or b""
    return b"".join([chunk async for chunk in reply.body])


ANSWER = {
    "response": "The capital is Paris.",
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}
CAUGHT = """
    try {
        await env.AI.run(%s);
    } catch (error) {
        const { name, message } = error;
        const { lastRequestHttpStatusCode: status, lastRequestInternalStatusCode: code } = env.AI;
        return { name, message, isError: error instanceof Error, status, code };
    }
"""


async def test_run_resolves_with_the_answer(ask: Ask, daemon: FakeDaemon) -> None:
    answer = await ask("return env.AI.run(MODEL, { prompt: 'Hello', max_tokens: 9 });")

    assert answer == ANSWER
    assert daemon.requests[0].prompt == "Hello"
    assert daemon.requests[0].max_tokens == 9


async def test_run_leaves_its_state_on_the_binding(ask: Ask, daemon: FakeDaemon) -> None:
    state = await ask("await env.AI.run(MODEL, { prompt: 'Hello' }); return { ...env.AI };")

    assert len(state.pop("lastRequestId")) == 36
    assert state == {
        "aiGatewayLogId": None,
        "lastRequestHttpStatusCode": 200,
        "lastRequestInternalStatusCode": None,
    }


async def test_run_drops_undefined_inputs(ask: Ask, daemon: FakeDaemon) -> None:
    answer = await ask("return env.AI.run(MODEL, { prompt: 'Hello', seed: undefined });")

    assert answer == ANSWER


async def test_a_streamed_run_is_a_readable_stream(run: Run, daemon: FakeDaemon) -> None:
    reply = await run(
        """
        const stream = await env.AI.run(MODEL, { prompt: "Hello", stream: true });
        if (!(stream instanceof ReadableStream)) throw new Error("no stream");
        return new Response(stream, { headers: { "content-type": "text/event-stream" } });
        """
    )

    body = await content(reply)

    assert body.startswith(b'data: {"response":"The capital","p":"')
    assert body.endswith(b"data: [DONE]\n\n")


async def test_cancelling_the_stream_frees_the_daemon(ask: Ask, daemon: FakeDaemon) -> None:
    daemon.script = stalling("The capital")

    first = await ask(
        """
        const stream = await env.AI.run(MODEL, { prompt: "Hello", stream: true });
        const reader = stream.getReader();
        const { value } = await reader.read();
        await reader.cancel();
        return new TextDecoder().decode(value);
        """
    )

    assert first.startswith('data: {"response":"The capital"')
    await daemon.cancelled.wait()


async def test_a_client_that_goes_away_frees_the_daemon(run: Run, daemon: FakeDaemon) -> None:
    daemon.script = stalling("The capital")
    reply = await run(
        "return new Response(await env.AI.run(MODEL, { prompt: 'a', stream: true }));"
    )
    assert reply.body is not None
    assert not isinstance(reply.body, bytes)
    await anext(reply.body)

    await reply.aclose()

    await daemon.cancelled.wait()


@pytest.mark.parametrize(
    ("args", "status", "code", "message"),
    [
        ("MODEL, {}", 400, 5006, "5006: Error: oneOf at '/' not met, 0 matches: required"),
        (
            "MODEL, { prompt: null }",
            400,
            5006,
            "5006: Error: oneOf at '/' not met, 0 matches: Type",
        ),
        ("MODEL", 400, 5006, "5006: Error: Type mismatch of '/', 'object' not in 'null'"),
        ("null, { prompt: 'a' }", 400, 5007, "5007: No such model null or task"),
        ("MODEL, { prompt: 'a' }, { tags: ['a b'] }", 400, 5006, "5006: Error: 'a b' is not a tag"),
        ("MODEL, { prompt: 'a' }, { queueRequest: true }", 400, 5006, "5006: Error: the option"),
        ("MODEL, { prompt: 'a' }, { websocket: true }", 400, 5006, "5006: Error: the option"),
    ],
)
async def test_wrong_calls_throw_as_on_workers(
    ask: Ask, args: str, status: int, code: int, message: str
) -> None:
    caught = await ask(CAUGHT % args)

    assert caught["message"].startswith(message)
    assert (caught["name"], caught["isError"]) == ("AiError", True)
    assert (caught["status"], caught["code"]) == (status, code)


async def test_what_the_daemon_refuses_throws(ask: Ask, daemon: FakeDaemon) -> None:
    daemon.script = refusing(
        grpc.StatusCode.NOT_FOUND, "No such model @cf/x/y or task", code="5007"
    )

    caught = await ask(CAUGHT % "'@cf/x/y', { prompt: 'a', stream: true }")

    assert (caught["message"], caught["status"]) == ("5007: No such model @cf/x/y or task", 400)


async def test_a_prefix_is_part_of_the_models_name(ask: Ask, daemon: FakeDaemon) -> None:
    await ask("return env.AI.run(MODEL, { prompt: 'a' }, { prefix: 'mine' });")

    assert daemon.requests[0].model == "mine:@cf/meta/llama-3-8b-instruct"


async def test_a_raw_response_carries_status_headers_and_body(run: Run, daemon: FakeDaemon) -> None:
    reply = await run("return env.AI.run(MODEL, { prompt: 'a' }, { returnRawResponse: true });")

    headers = dict(line.split(":", 1) for line in reply.head.splitlines()[1:])
    assert reply.head.startswith("200 ")
    assert headers["x-belem-model"] == "smollm2-135m-instruct"
    assert headers["content-type"] == "application/json"
    assert len(headers["cf-ai-req-id"]) == 36
    assert json.loads(await content(reply)) == ANSWER


async def test_a_raw_response_streams(run: Run, daemon: FakeDaemon) -> None:
    reply = await run(
        "return env.AI.run(MODEL, { prompt: 'a', stream: true }, { returnRawResponse: true });"
    )

    assert "content-type:text/event-stream" in reply.head
    assert (await content(reply)).endswith(b"data: [DONE]\n\n")


async def test_a_raw_response_never_throws(run: Run) -> None:
    reply = await run("return env.AI.run(MODEL, {}, { returnRawResponse: true });")

    error = json.loads(await content(reply))
    assert reply.head.startswith("400 ")
    assert (error["name"], error["internalCode"]) == ("AiError", 5006)


async def test_an_aborted_signal_throws_at_once(ask: Ask, daemon: FakeDaemon) -> None:
    caught = await ask(CAUGHT % "MODEL, { prompt: 'a' }, { signal: AbortSignal.abort() }")

    assert caught["name"] == "AbortError"
    assert daemon.requests == []


async def test_a_signal_ends_a_run_under_way(ask: Ask, daemon: FakeDaemon) -> None:
    daemon.script = stalling("The capital")

    name = await ask(
        """
        const controller = new AbortController();
        const run = env.AI.run(MODEL, { prompt: "a" }, { signal: controller.signal });
        await env.GATE.daemonAsked();
        controller.abort();
        return run.then(() => "none", (error) => error.name);
        """
    )

    assert name == "AbortError"
    await daemon.cancelled.wait()


async def test_a_signal_ends_a_stream_under_way(ask: Ask, daemon: FakeDaemon) -> None:
    daemon.script = stalling("The capital")

    name = await ask(
        """
        const controller = new AbortController();
        const options = { signal: controller.signal };
        const stream = await env.AI.run(MODEL, { prompt: "a", stream: true }, options);
        const reader = stream.getReader();
        await reader.read();
        controller.abort();
        return reader.read().then(() => "none", (error) => error.name);
        """
    )

    assert name == "AbortError"
    await daemon.cancelled.wait()


async def test_options_that_mean_nothing_here_are_taken(ask: Ask, daemon: FakeDaemon) -> None:
    answer = await ask(
        """
        return env.AI.run(MODEL, { prompt: "a" }, {
            gateway: { id: "mine", metadata: { big: 1n } },
            extraHeaders: { "x-session-affinity": "a" },
            rejectIfBusy: true,
            tags: ["a", "a"],
        });
        """
    )

    assert answer == ANSWER


async def test_models_lists_the_catalogue(ask: Ask, daemon: FakeDaemon) -> None:
    daemon.models = [
        pb.Model(name="@cf/meta/llama-3-8b-instruct", task="text-generation"),
        pb.Model(name="@cf/mistral/mistral-7b-instruct-v0.1", task="text-generation"),
    ]

    names = await ask(
        'return (await env.AI.models({ search: "llama" })).map((model) => model.name);'
    )

    assert names == ["@cf/meta/llama-3-8b-instruct"]


@pytest.mark.parametrize("member", ["gateway", "toMarkdown", "autorag", "aiSearch", "fetch"])
async def test_members_that_are_missing_say_so(ask: Ask, member: str) -> None:
    message = await ask(
        f"try {{ await env.AI.{member}('x'); }} catch (error) {{"
        " return `${error.name}: ${error.message}`; }"
    )

    assert message == (
        f"AiInternalError: env.AI.{member}() is not available in this version of Belem."
    )


async def test_the_binding_looks_like_workers(ask: Ask) -> None:
    seen = await ask(
        """
        const thrown = (f) => { try { f(); } catch (error) { return error.name; } };
        return {
            tag: `${env.AI}`,
            logs: env.AI.getLogs(),
            constructed: thrown(() => new env.AI.constructor("KV")),
            global: typeof __belem,
        };
        """
    )

    assert seen == {
        "tag": "[object Ai]",
        "logs": [],
        "constructed": "TypeError",
        "global": "undefined",
    }
