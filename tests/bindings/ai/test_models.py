import pytest

from belem.bindings.ai import InferenceClient
from belem.bindings.ai.models import list_models
from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.sdk.ops import Json
from tests.bindings.ai.daemon import FakeDaemon

LLAMA = "@cf/meta/llama-3-8b-instruct"
MISTRAL = "@cf/mistral/mistral-7b-instruct-v0.1"


@pytest.fixture(autouse=True)
def catalogue(daemon: FakeDaemon) -> None:
    daemon.models = [
        pb.Model(
            name=name,
            served_by="smollm2",
            task="text-generation",
            context_tokens=8192,
            stand_in=True,
        )
        for name in (LLAMA, MISTRAL)
    ]


async def names(client: InferenceClient, search: dict[str, Json]) -> list[Json]:
    return [model["name"] for model in await list_models(client, search) if isinstance(model, dict)]


async def test_list_models_has_the_shape_of_workers_search(client: InferenceClient) -> None:
    [model, _] = await list_models(client, {})

    assert isinstance(model, dict)
    assert set(model) == {"id", "source", "name", "description", "task", "tags", "properties"}
    assert model["name"] == LLAMA
    assert model["task"] == {
        "id": "c329a1f9-323d-4e91-b2aa-582dd4188d34",
        "name": "Text Generation",
        "description": "",
    }
    assert model["properties"] == [
        {"property_id": "context_window", "value": "8192"},
        {"property_id": "belem_served_by", "value": "smollm2"},
        {"property_id": "belem_stand_in", "value": "true"},
    ]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ({}, [LLAMA, MISTRAL]),
        ({"search": "LLAMA"}, [LLAMA]),
        ({"author": "mistral"}, [MISTRAL]),
        ({"author": "llama"}, []),
        ({"task": "Text Generation"}, [LLAMA, MISTRAL]),
        ({"task": "text-generation"}, [LLAMA, MISTRAL]),
        ({"task": "Translation"}, []),
        ({"per_page": 1}, [LLAMA]),
        ({"per_page": 1, "page": 2}, [MISTRAL]),
        ({"per_page": "1", "page": "3"}, []),
        ({"per_page": "many", "page": -4}, [LLAMA, MISTRAL]),
        ({"hide_experimental": True, "source": 2}, [LLAMA, MISTRAL]),
    ],
)
async def test_list_models_searches(
    client: InferenceClient, search: dict[str, Json], expected: list[Json]
) -> None:
    assert await names(client, search) == expected


async def test_list_models_gives_a_model_the_same_id_every_time(client: InferenceClient) -> None:
    first, second = await list_models(client, {}), await list_models(client, {})

    assert first == second
