"""A daemon that says what a test tells it to, behind the real protocol on a real socket."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import grpc
import grpc.aio

from belem.bindings.ai.v1 import inference_pb2 as pb

__all__ = ["Context", "FakeDaemon", "finished", "refusing", "saying", "stalling", "started", "text"]

Context: TypeAlias = "grpc.aio.ServicerContext[pb.GenerateRequest, pb.GenerateReply]"
Script: TypeAlias = Callable[[pb.GenerateRequest, Context], AsyncIterator[pb.GenerateReply]]


class FakeDaemon:
    """Serve `script` at an address; keep the requests, and note when a call was cancelled."""

    def __init__(self, address: str, script: Script) -> None:
        self.address = address
        self.script = script
        self.models: Sequence[pb.Model] = ()
        self.requests: list[pb.GenerateRequest] = []
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        server = grpc.aio.server()
        # Any: the methods of one service have different messages.
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Generate": grpc.unary_stream_rpc_method_handler(
                self._generate,
                request_deserializer=pb.GenerateRequest.FromString,
                response_serializer=pb.GenerateReply.SerializeToString,
            ),
            "ListModels": grpc.unary_unary_rpc_method_handler(
                self._list_models,
                request_deserializer=pb.ListModelsRequest.FromString,
                response_serializer=pb.ListModelsReply.SerializeToString,
            ),
        }
        service = grpc.method_handlers_generic_handler("belem.ai.v1.Inference", handlers)
        server.add_generic_rpc_handlers((service,))
        server.add_insecure_port(self.address)
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """End at once, calls under way included."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["FakeDaemon", None]:
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def _generate(
        self, request: pb.GenerateRequest, context: Context
    ) -> AsyncIterator[pb.GenerateReply]:
        self.requests.append(request)
        self.asked.set()
        try:
            async for reply in self.script(request, context):
                yield reply
        except (asyncio.CancelledError, GeneratorExit):
            # The second is how it ends when the cancellation met it between two replies.
            self.cancelled.set()
            raise

    async def _list_models(
        self, request: pb.ListModelsRequest, context: object
    ) -> pb.ListModelsReply:
        return pb.ListModelsReply(models=self.models)


def started(prompt_tokens: int = 7) -> pb.GenerateReply:
    return pb.GenerateReply(
        started=pb.Started(served_by="smollm2-135m-instruct", prompt_tokens=prompt_tokens)
    )


def text(piece: str) -> pb.GenerateReply:
    return pb.GenerateReply(text=pb.Text(text=piece, tokens=1))


def finished(completion_tokens: int, *, cached_tokens: int = 0) -> pb.GenerateReply:
    return pb.GenerateReply(
        finished=pb.Finished(
            finish_reason="stop",
            prompt_tokens=7,
            completion_tokens=completion_tokens,
            cached_tokens=cached_tokens,
        )
    )


def saying(*pieces: str) -> Script:
    """Answer every request with these pieces."""

    async def script(_: pb.GenerateRequest, __: Context) -> AsyncIterator[pb.GenerateReply]:
        yield started()
        for piece in pieces:
            yield text(piece)
        yield finished(len(pieces))

    return script


def stalling(*pieces: str) -> Script:
    """Say these pieces, and then nothing for ever."""

    async def script(_: pb.GenerateRequest, __: Context) -> AsyncIterator[pb.GenerateReply]:
        yield started()
        for piece in pieces:
            yield text(piece)
        await asyncio.Event().wait()

    return script


def refusing(status: grpc.StatusCode, details: str, *, code: str | None = None) -> Script:
    """Refuse every request before it starts."""

    async def script(_: pb.GenerateRequest, context: Context) -> AsyncIterator[pb.GenerateReply]:
        metadata = () if code is None else (("belem-code", code),)
        await context.abort(status, details, metadata)
        yield started()

    return script
