"""The gRPC service: requests checked, prompts prepared off the loop, tokens streamed."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, NoReturn, Protocol, TypeAlias

import grpc
import grpc.aio

from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.bindings.ai.v1 import inference_pb2_grpc as pb_grpc
from belem.runtime.inference.device import Device
from belem.runtime.inference.errors import BadRequest, InferenceFailed, grpc_status
from belem.runtime.inference.servable import ServableManager, ServableState
from belem.runtime.inference.store import Entry
from belem.runtime.inference.text.engine import Generation
from belem.runtime.inference.text.sampling import Sampling
from belem.runtime.inference.text.text_model import TextModel
from belem.sdk.errors import BelemError

__all__ = ["InferenceService", "ModelNames"]

_logger = logging.getLogger("belem.inference")

_Write: TypeAlias = Callable[[pb.GenerateReply], Awaitable[None]]

_TEXT_GENERATION: Final = "text-generation"
_ROLES: Final = ("system", "user", "assistant", "tool")
_MAX_MESSAGES: Final = 1024
_MAX_TEMPERATURE: Final = 5.0
_MAX_TOP_P: Final = 2.0
_MAX_TOP_K: Final = 50


class ModelNames(Protocol):
    """The catalogue, as far as the service needs it."""

    def resolve(self, name: str) -> Entry:
        """Return what answers to a name; raise UnknownModel where nothing does."""
        ...

    def entries(self) -> list[Entry]:
        """Return every name."""
        ...


class InferenceService(pb_grpc.InferenceServicer):
    """Answers Generate and ListModels. Close it to end its thread."""

    def __init__(
        self, names: ModelNames, manager: ServableManager, device: Device, context_tokens: int
    ) -> None:
        self._names = names
        self._manager = manager
        self._device = device
        self._context_tokens = context_tokens
        # Templates and long texts take milliseconds to seconds: not on the loop.
        self._preparing = ThreadPoolExecutor(1, thread_name_prefix="belem-prompts")

    def close(self) -> None:
        """End the thread that prepares prompts. Safe to call twice."""
        self._preparing.shutdown(wait=False, cancel_futures=True)

    async def Generate(  # gRPC's name
        self,
        request: pb.GenerateRequest,
        context: grpc.aio.ServicerContext[pb.GenerateRequest, pb.GenerateReply],
    ) -> None:
        """Stream one generation."""
        try:
            await self._generate(request, context.write)
        except BelemError as error:
            await _abort(context, error)
        except Exception as error:  # the request's boundary
            _logger.exception("request_failed")
            await _abort(context, InferenceFailed(f"{type(error).__name__} in the daemon."))

    async def ListModels(  # gRPC's name
        self,
        request: pb.ListModelsRequest,
        context: grpc.aio.ServicerContext[pb.ListModelsRequest, pb.ListModelsReply],
    ) -> pb.ListModelsReply:
        """List every name of the catalogue."""
        loop = asyncio.get_running_loop()
        entries = await loop.run_in_executor(self._preparing, self._names.entries)
        return pb.ListModelsReply(models=map(self._describe, entries))

    async def _generate(self, request: pb.GenerateRequest, write: _Write) -> None:
        _check(request)
        loop = asyncio.get_running_loop()
        entry = await loop.run_in_executor(self._preparing, self._names.resolve, request.model)
        if entry.task != _TEXT_GENERATION:
            raise BadRequest(f"{entry.name} is a model for {entry.task}, not {_TEXT_GENERATION}.")
        model = await self._manager.acquire(entry)
        prompt = await loop.run_in_executor(self._preparing, partial(_prepare, model, request))
        sampling = Sampling(
            temperature=request.temperature,
            top_k=request.top_k,
            top_p=request.top_p,
            seed=request.seed if request.HasField("seed") else None,
        )
        generation = model.generate(prompt, max_tokens=request.max_tokens, sampling=sampling)
        try:
            started = pb.Started(served_by=entry.served_by, prompt_tokens=len(prompt))
            await write(pb.GenerateReply(started=started))
            await _stream(model, generation, len(prompt), write)
        finally:
            generation.close()

    def _describe(self, entry: Entry) -> pb.Model:
        servable = self._manager.find(entry.served_by)
        model = servable.model if servable is not None else None
        state = servable.state if servable is not None else ServableState.START
        return pb.Model(
            name=entry.name,
            served_by=entry.served_by if entry.file is not None else "",
            task=entry.task,
            state=state,
            device=self._device.name,
            bytes=model.backend.bytes if model is not None else 0,
            context_tokens=min(entry.context_tokens, self._context_tokens),
            stand_in=entry.stand_in,
        )


def _check(request: pb.GenerateRequest) -> None:
    has_prompt = request.HasField("prompt")
    if has_prompt == bool(request.messages):
        raise BadRequest("A request has exactly one of prompt and messages.")
    if len(request.messages) > _MAX_MESSAGES:
        raise BadRequest(
            f"There are {len(request.messages)} messages; the limit is {_MAX_MESSAGES}."
        )
    for message in request.messages:
        if message.role not in _ROLES:
            allowed = ", ".join(_ROLES)
            raise BadRequest(f"A message's role is '{message.role[:40]}'; it may be {allowed}.")
    if request.max_tokens < 1:
        raise BadRequest(f"max_tokens is {request.max_tokens}; it must be 1 or more.")
    _check_range("temperature", request.temperature, _MAX_TEMPERATURE)
    _check_range("top_p", request.top_p, _MAX_TOP_P)
    _check_range("top_k", request.top_k, _MAX_TOP_K)


def _check_range(name: str, value: float, most: float) -> None:
    if not (math.isfinite(value) and 0 <= value <= most):
        raise BadRequest(f"{name} is {value:g}; it must be 0 to {most:g}.")


def _prepare(model: TextModel, request: pb.GenerateRequest) -> list[int]:
    if request.HasField("prompt"):
        if request.raw:
            return model.prepare_raw(request.prompt)
        return model.prepare_messages([{"role": "user", "content": request.prompt}])
    return model.prepare_messages(
        [{"role": message.role, "content": message.content} for message in request.messages]
    )


async def _stream(
    model: TextModel,
    generation: Generation,
    prompt_tokens: int,
    write: _Write,
) -> None:
    detokenizer = model.detokenizer()
    held = 0  # tokens whose text is not a whole character yet
    async for token in generation:
        held += 1
        if text := detokenizer.feed(token):
            await write(pb.GenerateReply(text=pb.Text(text=text, tokens=held)))
            held = 0
    finished = generation.finished
    assert finished is not None, "a generation that ends without an error has finished"
    await write(
        pb.GenerateReply(
            finished=pb.Finished(
                finish_reason=finished.reason,
                prompt_tokens=prompt_tokens,
                completion_tokens=finished.completion_tokens,
                cached_tokens=finished.cached_tokens,
            )
        )
    )


async def _abort(
    context: grpc.aio.ServicerContext[pb.GenerateRequest, pb.GenerateReply], error: BelemError
) -> NoReturn:
    status, belem_code = grpc_status(error)
    await context.abort(status, error.message, (("belem-code", str(belem_code)),))
    raise AssertionError("abort always raises")
