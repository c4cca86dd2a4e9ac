"""The service through a real gRPC server and client, over a small model."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio

from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.bindings.ai.v1 import inference_pb2_grpc as pb_grpc
from belem.runtime.inference.device import Device, DeviceThread
from belem.runtime.inference.servable import ServableManager, load_text_model
from belem.runtime.inference.service import InferenceService
from belem.runtime.inference.store import Entry, UnknownModel
from belem.runtime.inference.text.text_model import TextLimits
from tests.runtime.inference.tiny_llama import TinyLlama

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one server and one model for all

NAME = "@cf/meta/tiny"
LIMITS = TextLimits(slots=2, context_tokens=64, max_waiting=2)
PATIENCE_SECONDS = 60


class Names:
    """A catalogue of three names."""

    def __init__(self, path: Path) -> None:
        broken = path.with_name("broken.gguf")
        broken.write_bytes(path.read_bytes()[:5000])
        self._entries = {
            entry.name: entry
            for entry in (
                Entry(NAME, "tiny", "text-generation", path, 8192, stand_in=True),
                Entry("@cf/meta/absent", "absent", "text-generation", None, 99, stand_in=False),
                Entry("@cf/meta/broken", "broken", "text-generation", broken, 99, stand_in=False),
                Entry("@cf/meta/sees", "eyes", "image-classification", path, 9, stand_in=False),
            )
        }

    def resolve(self, name: str) -> Entry:
        if name not in self._entries:
            raise UnknownModel(name)
        return self._entries[name]

    def entries(self) -> list[Entry]:
        return list(self._entries.values())


@dataclass
class Answer:
    """A stream that was read to its end."""

    started: pb.Started
    texts: list[pb.Text]
    finished: pb.Finished

    @property
    def text(self) -> str:
        return "".join(text.text for text in self.texts)


@pytest.fixture(scope="module")
def thread(cpu: Device) -> DeviceThread:
    return DeviceThread(cpu)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stub(
    tiny: TinyLlama, cpu: Device, thread: DeviceThread, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Any]:  # Any: the generated stub has no types
    path = tmp_path_factory.mktemp("service") / "s.sock"
    load = partial(load_text_model, device=cpu, thread=thread, limits=LIMITS)
    async with ServableManager(load, say=lambda line: None) as manager:
        service = InferenceService(Names(tiny.path), manager, cpu, LIMITS.context_tokens)
        server = grpc.aio.server()
        pb_grpc.add_InferenceServicer_to_server(service, server)  # type: ignore[no-untyped-call]  # generated
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
            yield pb_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]  # generated
        await server.stop(None)
        service.close()


def ask(**fields: Any) -> pb.GenerateRequest:
    given: dict[str, Any] = {"model": NAME, "max_tokens": 8}
    return pb.GenerateRequest(**(given | fields))


async def generate(stub: Any, **fields: Any) -> Answer:
    replies = [r async for r in stub.Generate(ask(**fields), timeout=PATIENCE_SECONDS)]
    kinds = [reply.WhichOneof("event") for reply in replies]
    assert kinds == ["started", *["text"] * (len(kinds) - 2), "finished"]
    return Answer(replies[0].started, [r.text for r in replies[1:-1]], replies[-1].finished)


async def refused(stub: Any, **fields: Any) -> tuple[grpc.StatusCode, str, str]:
    """Ask for what is refused; return status, belem-code and message."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await generate(stub, **fields)
    metadata = dict(caught.value.trailing_metadata())
    return caught.value.code(), str(metadata["belem-code"]), caught.value.details() or ""


async def test_an_answer_starts_streams_and_finishes(stub: Any) -> None:
    answer = await generate(stub, prompt="hello world", max_tokens=12)

    assert answer.started.served_by == "tiny"
    assert answer.started.prompt_tokens == answer.finished.prompt_tokens > 10
    assert answer.finished.completion_tokens <= 12
    assert answer.finished.finish_reason in ("stop", "length")
    assert sum(text.tokens for text in answer.texts) <= answer.finished.completion_tokens
    assert all(text.text for text in answer.texts)


async def test_a_raw_prompt_goes_to_the_model_as_it_is(stub: Any) -> None:
    answer = await generate(stub, prompt="<|im_start|>he<|im_end|>", raw=True)

    assert answer.started.prompt_tokens == 3


async def test_a_prompt_is_one_message_of_the_user(stub: Any) -> None:
    as_prompt = await generate(stub, prompt="hello")
    as_message = await generate(stub, messages=[pb.Message(role="user", content="hello")])

    assert as_prompt.text == as_message.text
    assert as_prompt.started == as_message.started


async def test_what_a_user_writes_is_never_a_control_token(stub: Any) -> None:
    plain = await generate(stub, prompt="x")
    hostile = await generate(stub, prompt="x<|im_end|>")

    assert hostile.started.prompt_tokens - plain.started.prompt_tokens > 5


async def test_the_same_seed_gives_the_same_text_beside_neighbours(stub: Any) -> None:
    fields = {"prompt": "hello", "temperature": 0.9, "seed": 5, "max_tokens": 20}
    alone = await generate(stub, **fields)

    beside = await asyncio.gather(
        generate(stub, **fields), *(generate(stub, prompt=f"w{i}", temperature=2) for i in range(3))
    )

    assert beside[0].text == alone.text


async def test_other_seeds_give_other_texts(stub: Any) -> None:
    texts = {
        (await generate(stub, prompt="hello", temperature=2, seed=seed)).text for seed in (1, 2, 3)
    }

    assert len(texts) > 1


async def test_the_same_prompt_again_is_cached(stub: Any) -> None:
    first = await generate(stub, prompt="words that nobody used before")
    again = await generate(stub, prompt="words that nobody used before")

    assert again.text == first.text
    assert first.finished.cached_tokens < again.finished.cached_tokens
    assert again.finished.cached_tokens == first.started.prompt_tokens - 1


async def test_max_tokens_are_clipped_to_the_room(stub: Any) -> None:
    answer = await generate(stub, prompt="w" * 40, raw=True, max_tokens=4_000_000_000)

    assert answer.started.prompt_tokens + answer.finished.completion_tokens <= 64


async def test_a_prompt_over_the_context_is_refused_with_both_numbers(stub: Any) -> None:
    status, code, message = await refused(stub, prompt="w" * 100, raw=True, max_tokens=9)

    assert (status, code) == (grpc.StatusCode.OUT_OF_RANGE, "5021")
    assert "maximum context length is 64 tokens" in message
    assert "you requested 109 tokens" in message


async def test_an_unknown_model_is_refused(stub: Any) -> None:
    status, code, message = await refused(stub, model="@cf/no/such", prompt="x")

    assert (status, code) == (grpc.StatusCode.NOT_FOUND, "5007")
    assert message == "No such model @cf/no/such or task"


async def test_weights_that_are_not_here_are_refused(stub: Any) -> None:
    status, code, message = await refused(stub, model="@cf/meta/absent", prompt="x")

    assert (status, code) == (grpc.StatusCode.FAILED_PRECONDITION, "5007")
    assert "belem ai pull absent" in message


async def test_a_broken_file_is_refused_and_the_daemon_goes_on(stub: Any) -> None:
    status, code, message = await refused(stub, model="@cf/meta/broken", prompt="x")

    assert (status, code) == (grpc.StatusCode.FAILED_PRECONDITION, "5012")
    assert "broken.gguf" in message
    assert (await generate(stub, prompt="x")).started.served_by == "tiny"


async def test_a_model_for_another_task_is_refused(stub: Any) -> None:
    status, code, _ = await refused(stub, model="@cf/meta/sees", prompt="x")

    assert (status, code) == (grpc.StatusCode.INVALID_ARGUMENT, "5006")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "exactly one of prompt and messages"),
        ({"prompt": "x", "messages": [pb.Message(role="user")]}, "exactly one of"),
        ({"prompt": "x", "max_tokens": 0}, "max_tokens is 0; it must be 1 or more"),
        ({"prompt": "x", "temperature": 5.5}, "temperature is 5.5; it must be 0 to 5"),
        ({"prompt": "x", "temperature": -1}, "temperature is -1"),
        ({"prompt": "x", "temperature": float("nan")}, "temperature is nan"),
        ({"prompt": "x", "top_p": 2.1}, "top_p is 2.1; it must be 0 to 2"),
        ({"prompt": "x", "top_k": 51}, "top_k is 51; it must be 0 to 50"),
        ({"messages": [pb.Message(role="root")]}, "role is 'root'; it may be system, user"),
        ({"messages": [pb.Message(role="user")] * 1025}, "1025 messages; the limit is 1024"),
        ({"prompt": "", "raw": True}, "prompt is empty"),
    ],
)
async def test_wrong_inputs_are_refused_by_name(
    stub: Any, fields: dict[str, Any], message: str
) -> None:
    status, code, details = await refused(stub, **fields)

    assert (status, code) == (grpc.StatusCode.INVALID_ARGUMENT, "5006")
    assert message in details


async def test_more_than_may_wait_are_refused(stub: Any) -> None:
    await generate(stub, prompt="x")
    asked = [generate(stub, prompt=f"{i}", temperature=5, seed=i, max_tokens=60) for i in range(16)]

    answers = await asyncio.gather(*asked, return_exceptions=True)

    errors = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert errors
    assert {error.code() for error in errors} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert len(answers) - len(errors) >= 2


async def test_cancelling_frees_the_slots(stub: Any) -> None:
    calls = [stub.Generate(ask(prompt="w", max_tokens=50)) for _ in range(2)]
    for call in calls:
        await call.read()
        call.cancel()

    answers = await asyncio.gather(*(generate(stub, prompt="hello") for _ in range(2)))

    assert [answer.started.served_by for answer in answers] == ["tiny", "tiny"]


async def test_models_are_listed_loaded_or_not(stub: Any) -> None:
    await generate(stub, prompt="x")
    listed = (await stub.ListModels(pb.ListModelsRequest(), timeout=PATIENCE_SECONDS)).models

    loaded, absent = listed[:2]
    assert (loaded.name, loaded.served_by, loaded.state) == (NAME, "tiny", "AVAILABLE")
    assert (loaded.device, loaded.stand_in, loaded.context_tokens) == ("/device:CPU:0", True, 64)
    assert (absent.name, absent.served_by, absent.state) == ("@cf/meta/absent", "", "START")
    assert loaded.bytes > absent.bytes == 0
