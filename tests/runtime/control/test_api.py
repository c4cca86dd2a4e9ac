import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from belem.runtime.control import Deployments, SQLiteVersionStore, control_api
from belem.runtime.control.errors import ValidationFailed
from tests.runtime.control.stages import HELLO, FakeStage

TOKEN = "a-token-for-these-tests"
SCRIPTS = "/client/v4/accounts/any/workers/scripts"
METADATA: dict[str, object] = {"main_module": "worker.js", "compatibility_date": "2026-11-01"}
SECRET = {"name": "A", "type": "secret_text", "text": "s"}
DATA = {"name": "A", "type": "json"}


@pytest.fixture
def stage() -> FakeStage:
    return FakeStage()


@pytest.fixture
async def client(stage: FakeStage, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async def run(_: Request, model: str) -> Response:
        return JSONResponse({"model": model}, headers={"x-belem-model": "weights"})

    store = SQLiteVersionStore(tmp_path)
    api = control_api(Deployments(store, stage), token=TOKEN, run_model=run)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(api),
        base_url="http://control",
        headers={"authorization": f"Bearer {TOKEN}"},
    ) as made:
        yield made
    await store.aclose()


def form(
    metadata: object = METADATA, *modules: tuple[str, str, str]
) -> list[tuple[str, tuple[str | None, str, str]]]:
    given = modules or (("worker.js", HELLO, "application/javascript+module"),)
    text = metadata if isinstance(metadata, str) else json.dumps(metadata)
    parts: list[tuple[str, tuple[str | None, str, str]]] = [
        ("metadata", (None, text, "application/json"))
    ]
    parts += [(name, (name, source, kind)) for name, source, kind in given]
    return parts


async def put(
    client: httpx.AsyncClient, metadata: object = METADATA, *modules: tuple[str, str, str]
) -> httpx.Response:
    return await client.put(f"{SCRIPTS}/hello", files=form(metadata, *modules))


def error(response: httpx.Response) -> tuple[int, int, str]:
    body = response.json()
    assert body["success"] is False
    assert body["result"] is None
    (first,) = body["errors"]
    return response.status_code, first["code"], first["message"]


async def test_an_upload_is_a_version_that_is_live(
    client: httpx.AsyncClient, stage: FakeStage
) -> None:
    response = await put(client)

    body = response.json()
    assert (response.status_code, body["success"], body["errors"]) == (200, True, [])
    assert body["result"]["id"] == "hello"
    assert body["result"]["number"] == 1
    assert body["result"]["version_id"] == stage.live["hello"].id
    assert body["result"]["url"] == "http://hello.localhost:8787/"


async def test_bindings_variables_and_limits_are_read(
    client: httpx.AsyncClient, stage: FakeStage
) -> None:
    metadata = {
        **METADATA,
        "compatibility_flags": ["nodejs_compat"],
        "limits": {"cpu_ms": 50, "subrequests": 5},
        "belem": {"isolation": "request"},
        "bindings": [
            {"name": "AI", "type": "ai"},
            {"name": "OWN", "type": "kv_namespace"},
            {"name": "KV", "type": "kv_namespace", "namespace_id": "abc"},
            {"name": "TEXT", "type": "plain_text", "text": "t"},
            {"name": "SECRET", "type": "secret_text", "text": "s"},
            {"name": "DATA", "type": "json", "json": {"a": [1]}},
        ],
    }

    await put(client, metadata)

    upload = stage.live["hello"].upload
    assert [(b.name, b.type, b.namespace_id) for b in upload.bindings] == [
        ("AI", "ai", None),
        ("OWN", "kv_namespace", None),
        ("KV", "kv_namespace", "abc"),
    ]
    assert upload.vars == {"TEXT": "t", "SECRET": "s", "DATA": {"a": [1]}}
    assert (upload.compatibility_flags, upload.cpu_ms) == (("nodejs_compat",), 50)
    assert (upload.subrequests, upload.isolation) == (5, "request")


async def test_source_maps_are_taken_and_dropped(
    client: httpx.AsyncClient, stage: FakeStage
) -> None:
    await put(
        client,
        METADATA,
        ("worker.js", HELLO, "application/javascript+module"),
        ("worker.js.map", "{}", "application/source-map"),
    )

    assert list(stage.live["hello"].upload.modules) == ["worker.js"]


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ('{"main_module": "index.js", "bindings": [], "x": 1e999}', 10006),
        ('{"main_module": "index.js", "bindings": [], "x": NaN}', 10006),
        ("not json", 10006),
        ("[]", 10006),
        ("[" * 100_000, 10006),
        ({}, 10006),
        ({"main_module": "other.js"}, 10006),
        ({**METADATA, "compatibility_date": "yesterday"}, 10006),
        ({**METADATA, "compatibility_flags": "x"}, 10006),
        ({**METADATA, "compatibility_flags": [1]}, 10006),
        ({**METADATA, "bindings": {}}, 10006),
        ({**METADATA, "bindings": [1]}, 10006),
        ({**METADATA, "bindings": [{"type": "ai"}]}, 10056),
        ({**METADATA, "bindings": [{"name": "a b", "type": "ai"}]}, 10056),
        ({**METADATA, "bindings": [{"name": "A", "type": "d1"}]}, 10056),
        ({**METADATA, "bindings": [{"name": "A", "type": "plain_text"}]}, 10056),
        ({**METADATA, "bindings": [{"name": "A", "type": "ai"}] * 2}, 10056),
        (
            {
                **METADATA,
                "bindings": [{"name": "A", "type": "kv_namespace", "namespace_id": "a/b"}],
            },
            10056,
        ),
        ({**METADATA, "bindings": [{**SECRET, "text": "é" * 2_561}]}, 10054),
        ({**METADATA, "bindings": [{**DATA, "json": ["x" * 5_120]}]}, 10054),
        ({**METADATA, "bindings": [{**SECRET, "name": f"N{n}"} for n in range(129)]}, 10055),
        ({**METADATA, "limits": {"cpu_ms": 0}}, 10001),
        ({**METADATA, "limits": {"cpu_ms": True}}, 10001),
        ({**METADATA, "limits": {"cpu_ms": 300_001}}, 10001),
        ({**METADATA, "limits": {"subrequests": 0}}, 10001),
        ({**METADATA, "limits": 5}, 10001),
        ({**METADATA, "belem": {"isolation": "process"}}, 10006),
    ],
)
async def test_metadata_that_is_wrong_is_refused(
    client: httpx.AsyncClient, stage: FakeStage, metadata: object, code: int
) -> None:
    status, number, _ = error(await put(client, metadata))

    assert (status, number) == (400, code)
    assert not stage.live


async def test_a_module_of_a_kind_that_is_not_known_is_refused(client: httpx.AsyncClient) -> None:
    response = await put(client, METADATA, ("worker.js", HELLO, "application/wasm"))

    assert error(response)[:2] == (400, 10006)


async def test_two_modules_of_one_name_are_refused(client: httpx.AsyncClient) -> None:
    module = ("worker.js", HELLO, "application/javascript+module")

    assert error(await put(client, METADATA, module, module))[:2] == (400, 10006)


async def test_a_body_that_is_no_form_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.put(
        f"{SCRIPTS}/hello",
        content=b"--x\r\nnonsense",
        headers={"content-type": "multipart/form-data; boundary=x"},
    )

    assert error(response)[:2] == (400, 10006)


async def test_a_name_that_cannot_be_a_host_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.put(f"{SCRIPTS}/Hello_World", files=form())

    assert error(response)[:2] == (400, 10016)


async def test_a_worker_that_does_not_start_is_refused(
    client: httpx.AsyncClient, stage: FakeStage
) -> None:
    stage.refuse = ValidationFailed("Uncaught TypeError: no")

    assert error(await put(client)) == (400, 10021, "Uncaught TypeError: no")


async def test_an_upload_over_the_limit_is_refused(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belem.runtime.control.api.UPLOAD_LIMIT_BYTES", 1024 * 1024)
    big = ("worker.js", "x" * 2_000_000, "application/javascript+module")

    announced = await put(client, METADATA, big)

    async def unannounced() -> AsyncIterator[bytes]:
        for _ in range(32):
            yield b"x" * 65536

    streamed = await client.put(
        f"{SCRIPTS}/hello",
        content=unannounced(),
        headers={"content-type": "multipart/form-data; boundary=x"},
    )

    assert error(announced)[:2] == (413, 10027)
    assert error(streamed)[1] in (10006, 10027)


async def test_workers_are_listed_and_deleted(client: httpx.AsyncClient) -> None:
    await put(client)

    listed = (await client.get(SCRIPTS)).json()["result"]
    deleted = await client.delete(f"{SCRIPTS}/hello")
    again = await client.delete(f"{SCRIPTS}/hello")

    assert [(worker["id"], worker["number"]) for worker in listed] == [("hello", 1)]
    assert deleted.json()["success"] is True
    assert error(again)[:2] == (404, 10007)
    assert (await client.get(SCRIPTS)).json()["result"] == []


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"bearer {TOKEN}"],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", SCRIPTS),
        ("PUT", f"{SCRIPTS}/hello"),
        ("DELETE", f"{SCRIPTS}/hello"),
        ("POST", "/client/v4/accounts/any/ai/run/@cf/meta/llama"),
    ],
)
async def test_everything_needs_the_token(
    client: httpx.AsyncClient, method: str, path: str, header: str
) -> None:
    response = await client.request(method, path, headers={"authorization": header})

    assert error(response)[:2] == (401, 10000)
    assert TOKEN not in response.text


async def test_health_needs_no_token(client: httpx.AsyncClient) -> None:
    response = await client.get("/healthz", headers={"authorization": ""})

    assert response.json() == {"status": "ok"}


async def test_an_unknown_path_is_an_envelope_too(client: httpx.AsyncClient) -> None:
    assert error(await client.get("/client/v4/zones"))[:2] == (404, 7003)
    assert error(await client.post(SCRIPTS))[:2] == (405, 7003)


async def test_a_model_is_run_by_its_whole_name(client: httpx.AsyncClient) -> None:
    response = await client.post(
        "/client/v4/accounts/any/ai/run/@cf/meta/llama-3-8b-instruct", json={"prompt": "x"}
    )

    assert response.json() == {"model": "@cf/meta/llama-3-8b-instruct"}
    assert response.headers["x-belem-model"] == "weights"
