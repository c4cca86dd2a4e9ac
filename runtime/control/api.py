"""The control plane's HTTP API, in the shape of Cloudflare's: paths, envelope and error numbers."""

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive

from belem.runtime.control.deployments import Deployments
from belem.runtime.control.errors import (
    NoSuchRoute,
    NotAuthorized,
    ScriptNotFound,
    UploadTooLarge,
    api_code,
)
from belem.runtime.control.tail_filter import read_filter
from belem.runtime.control.tails import TailResponse, Tails
from belem.runtime.control.uploads import UPLOAD_LIMIT_BYTES, read_upload
from belem.runtime.control.versions import Binding, WorkerSummary, check_worker_name
from belem.sdk import BelemError

__all__ = ["RenderMetrics", "RunModel", "control_api"]

_SCRIPTS: Final = "/client/v4/accounts/{account}/workers/scripts"
_MOST_NAMES: Final = 20
_AI_RUN: Final = "/client/v4/accounts/{account}/ai/run/{model:path}"


class RunModel(Protocol):
    """Answer one REST call of a model, errors included."""

    async def __call__(self, request: Request, model: str, /) -> Response: ...


class RenderMetrics(Protocol):
    """Return the host's metrics in a format that the Accept header asks for, and its type."""

    async def __call__(self, accept: str, /) -> tuple[bytes, str]: ...


def control_api(
    deployments: Deployments,
    *,
    token: str,
    run_model: RunModel | None = None,
    tails: Tails | None = None,
    render_metrics: RenderMetrics | None = None,
) -> ASGIApp:
    """Return the API as an ASGI application. Everything but /healthz needs the bearer token."""

    async def put_script(request: Request) -> Response:
        worker = check_worker_name(request.path_params["name"])
        upload = await read_upload(request, worker)
        deployed = await deployments.deploy(upload)
        version = deployed.version
        return _success(
            {
                "id": worker,
                "version_id": version.id,
                "number": version.number,
                "created_on": _date(version.created_ms),
                "modified_on": _date(version.created_ms),
                "startup_time_ms": round(deployed.startup_ms, 1),
                "url": deployed.url,
            }
        )

    async def list_scripts(_: Request) -> Response:
        workers = await deployments.list()
        return _success([_summary(worker, deployments.url(worker.name)) for worker in workers])

    async def delete_script(request: Request) -> Response:
        await deployments.delete(request.path_params["name"])
        return _success(None)

    async def run(request: Request) -> Response:
        if run_model is None:
            raise NoSuchRoute("This host has no inference daemon; start it with --inference.")
        return await run_model(request, request.path_params["model"])

    async def tail(request: Request) -> Response:
        worker: str = request.path_params["name"]
        filter = read_filter(request.query_params)
        if tails is None:
            raise NoSuchRoute("This host has no tails.")
        _check_known(worker, await deployments.list())
        return TailResponse(tails.open(worker, filter))

    async def metrics(request: Request) -> Response:
        if render_metrics is None:
            raise NoSuchRoute("This host has no metrics.")
        body, media_type = await render_metrics(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": media_type, "cache-control": "no-store"})

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return Starlette(
        routes=[
            Route("/healthz", healthz, methods=["GET"]),
            Route(_SCRIPTS, _guarded(list_scripts, token), methods=["GET"]),
            Route(_SCRIPTS + "/{name}", _guarded(put_script, token), methods=["PUT"]),
            Route(_SCRIPTS + "/{name}", _guarded(delete_script, token), methods=["DELETE"]),
            Route(_SCRIPTS + "/{name}/tail", _guarded(tail, token), methods=["GET"]),
            Route("/metrics", _guarded(metrics, token), methods=["GET"]),
            Route(_AI_RUN, _guarded(run, token), methods=["POST"]),
        ],
        exception_handlers={BelemError: _failed, HTTPException: _no_route},
    )


Endpoint = Callable[[Request], Awaitable[Response]]


def _guarded(endpoint: Endpoint, token: str) -> Endpoint:
    """Check the token before anything is read, and bound what is read after it."""
    expected = f"Bearer {token}".encode()

    async def checked(request: Request) -> Response:
        given = request.headers.get("authorization", "").encode("latin-1", "replace")
        if not hmac.compare_digest(given, expected):
            raise NotAuthorized("Authentication error: the bearer token is missing or wrong.")
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > UPLOAD_LIMIT_BYTES:
            raise _too_large()
        return await endpoint(Request(request.scope, _bounded(request.receive)))

    return checked


def _bounded(receive: Receive) -> Receive:
    received_bytes = 0

    async def bounded() -> Message:
        nonlocal received_bytes
        message = await receive()
        received_bytes += len(message.get("body", b""))
        if received_bytes > UPLOAD_LIMIT_BYTES:
            raise _too_large()
        return message

    return bounded


def _too_large() -> UploadTooLarge:
    return UploadTooLarge(f"The upload is over the limit of {UPLOAD_LIMIT_BYTES >> 20} MiB.")


def _check_known(worker: str, workers: Sequence[WorkerSummary]) -> None:
    names = [summary.name for summary in workers]
    if worker in names:
        return
    shown = ", ".join(names[:_MOST_NAMES]) or "none yet"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    raise ScriptNotFound(f"There is no worker {worker[:80]!r} here. The workers: {shown}{more}.")


def _success(result: object) -> Response:
    return JSONResponse({"result": result, "success": True, "errors": [], "messages": []})


def _failure(status: int, code: int, message: str) -> Response:
    errors = [{"code": code, "message": message}]
    body = {"result": None, "success": False, "errors": errors, "messages": []}
    # What is left of the body is not read, so the connection ends here.
    return JSONResponse(body, status, headers={"connection": "close"})


def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, BelemError)
    return _failure(error.status, api_code(error), error.message)


def _no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _failure(error.status_code, NoSuchRoute.number, f"No such route: {error.detail}")


def _summary(worker: WorkerSummary, url: str) -> Mapping[str, object]:
    return {
        "id": worker.name,
        "version_id": worker.version_id,
        "number": worker.number,
        "created_on": _date(worker.created_ms),
        "modified_on": _date(worker.modified_ms),
        "bindings": [_binding(binding) for binding in worker.bindings],
        "url": url,
    }


def _binding(binding: Binding) -> Mapping[str, object]:
    shown: dict[str, object] = {"name": binding.name, "type": binding.type}
    if binding.namespace_id is not None:
        shown["namespace_id"] = binding.namespace_id
    return shown


def _date(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
