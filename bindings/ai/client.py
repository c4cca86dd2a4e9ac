"""The inference daemon as seen from here: one lazily made gRPC channel, bounded waits."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeAlias

import grpc
import grpc.aio

from belem.bindings.ai.errors import (
    INTERNAL,
    AIError,
    daemon_unreachable,
    from_rpc,
    is_lost_connection,
)
from belem.bindings.ai.v1 import inference_pb2 as pb

if TYPE_CHECKING:
    _Call: TypeAlias = grpc.aio.UnaryStreamCall[pb.GenerateRequest, pb.GenerateReply]
    _Generate: TypeAlias = grpc.aio.UnaryStreamMultiCallable[pb.GenerateRequest, pb.GenerateReply]
    _ListModels: TypeAlias = grpc.aio.UnaryUnaryMultiCallable[
        pb.ListModelsRequest, pb.ListModelsReply
    ]

__all__ = ["Generation", "InferenceClient"]

_logger = logging.getLogger("belem.ai")

_SERVICE: Final = pb.DESCRIPTOR.services_by_name["Inference"].full_name

_READY: Final = grpc.ChannelConnectivity.READY
_FIRST_LOOK_SECONDS: Final = 0.001
_LAST_LOOK_SECONDS: Final = 0.05

_CHANNEL_OPTIONS: Final = (
    # A daemon that was restarted must be found again in a moment, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A peer that vanished without closing (a pulled cable) is noticed. The daemon allows this pace.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Where the address names many daemons, take them in turn.
    ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}'),
    # One client's channel, and its back-off, are its own.
    ("grpc.use_local_subchannel_pool", 1),
)


class InferenceClient:
    """Ask the daemon at a gRPC target: `unix:/run/belem/inference.sock`, `host:port`, `dns:///…`.

    The channel is made in the event loop of the first call. A daemon that dies and comes back at
    the same address is found again; while it is away a call waits `connect_timeout_seconds` for it.
    """

    def __init__(
        self,
        address: str,
        *,
        connect_timeout_seconds: float = 30.0,
        answer_timeout_seconds: float = 300.0,
    ) -> None:
        self.address = address
        self._connect_timeout_seconds = connect_timeout_seconds
        self._answer_timeout_seconds = answer_timeout_seconds
        self._link: _Link | None = None

    async def generate(self, request: pb.GenerateRequest) -> "Generation":
        """Start one generation; return once the daemon has accepted it."""
        try:
            return await self._start(request)
        except grpc.aio.AioRpcError as error:
            # The connection was found dead in using it. Nothing has been generated, so asking again
            # is safe, and the wait for a ready channel is what bridges the daemon's restart.
            if not is_lost_connection(error):
                raise from_rpc(error) from error
        try:
            return await self._start(request)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from error

    async def list_models(self) -> Sequence[pb.Model]:
        """Return every name in the daemon's catalogue."""
        link = await self._ready_link()
        try:
            reply = await link.list_models(
                pb.ListModelsRequest(), timeout=self._connect_timeout_seconds
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from error
        return list(reply.models)

    async def aclose(self) -> None:
        """Close the channel; generations under way are cancelled. Safe to call twice."""
        link, self._link = self._link, None
        if link is not None:
            await link.channel.close()

    async def __aenter__(self) -> "InferenceClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _start(self, request: pb.GenerateRequest) -> "Generation":
        link = await self._ready_link()
        call = link.generate(request, timeout=self._answer_timeout_seconds)
        try:
            reply = await call.read()
        except BaseException:
            call.cancel()
            raise
        if not isinstance(reply, pb.GenerateReply) or reply.WhichOneof("event") != "started":
            call.cancel()
            _logger.error("daemon_broke_protocol", extra={"address": self.address})
            raise AIError(INTERNAL, "Internal server error")
        return Generation(call, reply.started)

    async def _ready_link(self) -> "_Link":
        if self._link is None:
            self._link = _link(self.address)
        link = self._link
        deadline_s = time.monotonic() + self._connect_timeout_seconds
        pause_s = _FIRST_LOOK_SECONDS
        # Looked at, and not waited for with channel_ready(): a watcher of gRPC's that is given up
        # stays behind until the state changes, and then may speak to an event loop that is closed.
        while link.channel.get_state(try_to_connect=True) is not _READY:
            if time.monotonic() > deadline_s:
                _logger.warning("daemon_unreachable", extra={"address": self.address})
                raise daemon_unreachable()
            await asyncio.sleep(pause_s)
            if self._link is not link:  # closed meanwhile
                raise daemon_unreachable()
            pause_s = min(2 * pause_s, _LAST_LOOK_SECONDS)
        return link


class Generation:
    """One answer as it comes: `Text` pieces, then one `Finished`. Closing it frees its slot."""

    def __init__(self, call: "_Call", started: pb.Started) -> None:
        self._call = call
        self._over = False
        self._closed = False
        self.served_by = started.served_by
        self.prompt_tokens = started.prompt_tokens

    def __aiter__(self) -> "Generation":
        return self

    async def __anext__(self) -> pb.Text | pb.Finished:
        if self._over:
            raise StopAsyncIteration
        try:
            reply = await self._call.read()
        except grpc.aio.AioRpcError as error:
            self._over = True
            raise from_rpc(error) from error
        except asyncio.CancelledError:
            # gRPC says it this way to a reader whose generation another task has closed, too.
            if self._closed and not _is_being_cancelled():
                raise StopAsyncIteration from None
            raise
        if isinstance(reply, pb.GenerateReply):
            match reply.WhichOneof("event"):
                case "text":
                    return reply.text
                case "finished":
                    self._over = True
                    return reply.finished
                case _:
                    pass
        # The stream ended without Finished, or said what it may not say here: no answer to trust.
        self._over = True
        self._call.cancel()
        raise AIError(INTERNAL, "Internal server error")

    async def aclose(self) -> None:
        """Stop: the daemon sees the cancellation within one token. Safe to call twice."""
        self._over = self._closed = True
        self._call.cancel()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@dataclass(frozen=True, slots=True)
class _Link:
    """A channel and the calls on it. Made by hand: the generated stub has no types."""

    channel: grpc.aio.Channel
    generate: "_Generate"
    list_models: "_ListModels"


def _link(address: str) -> _Link:
    channel = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
    return _Link(
        channel,
        channel.unary_stream(
            f"/{_SERVICE}/Generate",
            request_serializer=pb.GenerateRequest.SerializeToString,
            response_deserializer=pb.GenerateReply.FromString,
        ),
        channel.unary_unary(
            f"/{_SERVICE}/ListModels",
            request_serializer=pb.ListModelsRequest.SerializeToString,
            response_deserializer=pb.ListModelsReply.FromString,
        ),
    )
