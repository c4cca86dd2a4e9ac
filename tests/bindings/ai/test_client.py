import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest

from belem.bindings.ai import AIError, InferenceClient
from belem.bindings.ai.v1 import inference_pb2 as pb
from tests.bindings.ai.daemon import Context, FakeDaemon, refusing, saying, stalling, started, text

REQUEST = pb.GenerateRequest(model="@cf/meta/llama-3-8b-instruct", prompt="Hello", max_tokens=5)


async def collect(client: InferenceClient) -> str:
    generation = await client.generate(REQUEST)
    return "".join([event.text async for event in generation if isinstance(event, pb.Text)])


async def collect_in_the_end(client: InferenceClient) -> str:
    async with asyncio.timeout(60):
        while True:
            try:
                return await collect(client)
            except AIError:  # a loaded machine may take longer than the client waits
                continue


async def test_generate_gives_the_weights_and_the_pieces(
    client: InferenceClient, daemon: FakeDaemon
) -> None:
    generation = await client.generate(REQUEST)

    events = [event async for event in generation]

    assert (generation.served_by, generation.prompt_tokens) == ("smollm2-135m-instruct", 7)
    assert [event.text for event in events[:-1] if isinstance(event, pb.Text)] == [
        "The capital",
        " is",
        " Paris.",
    ]
    assert isinstance(events[-1], pb.Finished)
    assert daemon.requests == [REQUEST]


async def test_generate_waits_for_a_daemon_that_starts_later(
    client: InferenceClient, address: str
) -> None:
    answer = asyncio.create_task(collect(client))

    async with FakeDaemon(address, saying("late")).running():
        assert await answer == "late"


async def test_generate_gives_up_on_a_daemon_that_never_comes(address: str) -> None:
    async with InferenceClient(address, connect_timeout_seconds=0.05) as client:
        with pytest.raises(AIError, match="5012: The inference daemon cannot be reached"):
            await client.generate(REQUEST)


async def test_closing_the_client_ends_those_who_wait_for_the_daemon(address: str) -> None:
    client = InferenceClient(address)
    waiting = asyncio.create_task(client.generate(REQUEST))
    await asyncio.sleep(0)

    await client.aclose()

    with pytest.raises(AIError, match="5012: "):
        await waiting


async def test_giving_up_does_not_spoil_the_next_call(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with InferenceClient(address, connect_timeout_seconds=0.3) as client:
        waits = [client.generate(REQUEST) for _ in range(5)]
        given_up = await asyncio.gather(*waits, return_exceptions=True)

        async with FakeDaemon(address, saying("here")).running():
            answer = await collect_in_the_end(client)

    assert [type(error) for error in given_up] == [AIError] * 5
    assert answer == "here"
    assert {record.getMessage() for record in caplog.records} == {"daemon_unreachable"}


async def test_the_next_call_after_a_restart_works(client: InferenceClient, address: str) -> None:
    async with FakeDaemon(address, saying("one")).running():
        first = await collect(client)

    async with FakeDaemon(address, saying("two")).running():
        second = await collect(client)

    assert (first, second) == ("one", "two")


async def test_a_daemon_that_dies_in_mid_answer_is_told(
    client: InferenceClient, daemon: FakeDaemon
) -> None:
    daemon.script = stalling("The capital")
    generation = await client.generate(REQUEST)
    await anext(generation)

    await daemon.stop()

    with pytest.raises(AIError) as caught:
        await anext(generation)
    assert caught.value.internal_code == 5012
    assert "went away" in caught.value.description


async def test_a_refusal_is_not_asked_again(client: InferenceClient, daemon: FakeDaemon) -> None:
    daemon.script = refusing(grpc.StatusCode.UNAVAILABLE, "Still loading", code="3040")

    with pytest.raises(AIError, match="3040: Still loading"):
        await client.generate(REQUEST)

    assert len(daemon.requests) == 1


async def test_closing_a_generation_cancels_it(client: InferenceClient, daemon: FakeDaemon) -> None:
    daemon.script = stalling("The capital")
    generation = await client.generate(REQUEST)

    await generation.aclose()
    await generation.aclose()

    await daemon.cancelled.wait()
    assert [event async for event in generation] == []


async def test_closing_a_generation_ends_a_reader_in_another_task(
    client: InferenceClient, daemon: FakeDaemon
) -> None:
    daemon.script = stalling("The capital")
    generation = await client.generate(REQUEST)
    await anext(generation)
    reader = asyncio.ensure_future(anext(generation, None))
    await asyncio.sleep(0)

    await generation.aclose()

    assert await reader is None


async def test_cancelling_the_reader_cancels_the_generation(
    client: InferenceClient, daemon: FakeDaemon
) -> None:
    daemon.script = stalling()
    reader = asyncio.create_task(collect(client))
    await daemon.asked.wait()

    reader.cancel()

    with pytest.raises(asyncio.CancelledError):
        await reader
    await daemon.cancelled.wait()


async def test_an_answer_over_the_time_limit_is_a_timeout(daemon: FakeDaemon) -> None:
    daemon.script = stalling()

    async with InferenceClient(daemon.address, answer_timeout_seconds=0.2) as client:
        with pytest.raises(AIError, match="3007: Request timeout"):
            await collect(client)


async def breaks_off(_: pb.GenerateRequest, __: Context) -> AsyncIterator[pb.GenerateReply]:
    yield started()
    yield text("The capital")


async def starts_twice(_: pb.GenerateRequest, __: Context) -> AsyncIterator[pb.GenerateReply]:
    yield started()
    yield started()


async def never_starts(_: pb.GenerateRequest, __: Context) -> AsyncIterator[pb.GenerateReply]:
    yield text("The capital")


async def says_nothing(_: pb.GenerateRequest, __: Context) -> AsyncIterator[pb.GenerateReply]:
    return
    yield


@pytest.mark.parametrize("script", [breaks_off, starts_twice, never_starts, says_nothing])
async def test_a_daemon_that_breaks_the_protocol_is_an_internal_error(
    client: InferenceClient, daemon: FakeDaemon, script: object
) -> None:
    daemon.script = script  # type: ignore[assignment]  # parametrize loses the type

    with pytest.raises(AIError, match="3043: Internal server error"):
        await collect(client)


async def test_list_models_gives_the_catalogue(client: InferenceClient, daemon: FakeDaemon) -> None:
    daemon.models = [pb.Model(name="@cf/meta/llama-3-8b-instruct", stand_in=True)]

    models = await client.list_models()

    assert [(model.name, model.stand_in) for model in models] == [
        ("@cf/meta/llama-3-8b-instruct", True)
    ]


async def test_aclose_is_safe_to_call_twice(client: InferenceClient, daemon: FakeDaemon) -> None:
    assert await collect(client) == "The capital is Paris."

    await client.aclose()
    await client.aclose()
