"""`env.AI.models()`: search the daemon's catalogue, in the shape of Workers' model search."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from belem.bindings.ai.client import InferenceClient
from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.sdk.ops import Json

__all__ = ["list_models"]

_DEFAULT_PER_PAGE: Final = 50
_MAX_PER_PAGE: Final = 100

# Workers' own id of the task, and its name there.
_TASKS: Final[Mapping[str, tuple[str, str]]] = {
    "text-generation": ("c329a1f9-323d-4e91-b2aa-582dd4188d34", "Text Generation"),
}


async def list_models(client: InferenceClient, search: Mapping[str, Json]) -> list[Json]:
    """Return the models that match `{search, author, task, page, per_page}`."""
    models = [model for model in await client.list_models() if _matches(model, search)]
    per_page = min(_positive(search.get("per_page"), _DEFAULT_PER_PAGE), _MAX_PER_PAGE)
    start = (_positive(search.get("page"), 1) - 1) * per_page
    return [_describe(model) for model in models[start : start + per_page]]


def _matches(model: pb.Model, search: Mapping[str, Json]) -> bool:
    words = str(search.get("search") or "").lower()
    author = str(search.get("author") or "").lower()
    task = str(search.get("task") or "").lower()
    return (
        words in model.name.lower()
        and (not author or f"/{author}/" in model.name.lower())
        and (not task or task in (model.task, _TASKS.get(model.task, ("", ""))[1].lower()))
    )


def _describe(model: pb.Model) -> dict[str, Json]:
    task_id, task_name = _TASKS.get(model.task, ("", model.task))
    properties: Sequence[Json] = [
        {"property_id": "context_window", "value": str(model.context_tokens)},
        {"property_id": "belem_served_by", "value": model.served_by},
        {"property_id": "belem_stand_in", "value": "true" if model.stand_in else "false"},
    ]
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, model.name)),
        "source": 1,
        "name": model.name,
        "description": f"Answered by {model.served_by}" if model.served_by else "Not installed",
        "task": {"id": task_id, "name": task_name, "description": ""},
        "tags": [],
        "properties": properties,
    }


def _positive(value: Json, default: int) -> int:
    try:
        number = int(value) if isinstance(value, int | float | str) else default
    except (ValueError, OverflowError):
        return default
    return number if number > 0 else default
