"""Workers AI's REST route over the AI binding, for programs that are not workers."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Protocol, cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from belem.bindings.ai import AIBinding, rest_run
from belem.runtime.control.api import RunModel

__all__ = ["rest_models"]


class _Closable(Protocol):
    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


def rest_models(binding: AIBinding) -> RunModel:
    """Return the handler of `POST …/ai/run/{model}`."""

    async def run(request: Request, model: str) -> Response:
        answer = await rest_run(binding, model, await request.body(), dict(request.query_params))
        headers = dict(answer.headers)
        if isinstance(answer.body, bytes):
            return Response(answer.body, answer.status, headers)
        # Generation stops when the client goes away: Starlette cancels the iterator below.
        body = cast("_Closable", answer.body)  # rest_run promises aclose; the protocol has no name
        return StreamingResponse(_closing(body), answer.status, headers)

    return run


async def _closing(body: _Closable) -> AsyncIterator[bytes]:
    async with aclosing(body):
        async for chunk in body:
            yield chunk
