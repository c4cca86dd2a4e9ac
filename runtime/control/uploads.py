"""Read an upload: Cloudflare's multipart form, JSON metadata and one part for each module."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from belem.runtime.control.errors import (
    ApiError,
    BadMetadata,
    TooManyVariables,
    UnknownBinding,
    UploadTooLarge,
    VariableTooLarge,
)
from belem.runtime.control.versions import Binding, Isolation, Upload
from belem.runtime.project.settings import (
    VARIABLE_LIMIT_BYTES,
    VARIABLES_LIMIT,
    variable_bytes,
)
from belem.sdk import Json

__all__ = ["UPLOAD_LIMIT_BYTES", "parse_metadata", "read_upload"]

UPLOAD_LIMIT_BYTES: Final = 64 * 1024 * 1024
_METADATA_LIMIT_BYTES: Final = 1024 * 1024
_PARTS_LIMIT: Final = 2_000
_CPU_LIMIT_MS: Final = 300_000
_SUBREQUESTS_LIMIT: Final = 10_000_000

_MODULE_TYPES: Final = (
    "application/javascript+module",
    "application/javascript",
    "text/javascript",
)
_SOURCE_MAP_TYPE: Final = "application/source-map"
_NAMESPACE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BINDING_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,127}")
_DATE: Final = re.compile(r"(?:\d{4}-\d{2}-\d{2})?")


async def read_upload(request: Request, worker: str) -> Upload:
    """Read the request's form. Everything in it is from the network, and checked."""
    try:
        form = await request.form(
            max_files=_PARTS_LIMIT, max_fields=_PARTS_LIMIT, max_part_size=_METADATA_LIMIT_BYTES
        )
    except (MultiPartException, HTTPException, ValueError) as error:
        detail = error.detail if isinstance(error, HTTPException) else error
        raise BadMetadata(f"The upload is not a readable multipart form: {detail}") from error
    try:
        metadata = await _metadata(form)
        modules = await _modules(form)
    finally:
        await form.close()
    return parse_metadata(worker, metadata, modules)


def parse_metadata(worker: str, metadata: Mapping[str, Json], modules: Mapping[str, str]) -> Upload:
    """Turn the metadata and the modules into an `Upload`, or say which field is wrong."""
    main = metadata.get("main_module")
    if not isinstance(main, str) or main not in modules:
        raise BadMetadata(
            f"main_module is {main!r}; it must be one of the modules: {sorted(modules)[:20]}."
        )
    bindings, variables = _bindings(metadata.get("bindings"))
    _check_variables(variables)
    date = metadata.get("compatibility_date", "")
    if not isinstance(date, str) or _DATE.fullmatch(date) is None:
        raise BadMetadata(f"compatibility_date is {date!r}; it must be a date such as 2026-11-01.")
    return Upload(
        worker=worker,
        main_module=main,
        modules=modules,
        bindings=bindings,
        vars=variables,
        compatibility_date=date,
        compatibility_flags=_strings(metadata.get("compatibility_flags"), "compatibility_flags"),
        cpu_ms=_limit(metadata.get("limits"), "cpu_ms", _CPU_LIMIT_MS),
        subrequests=_limit(metadata.get("limits"), "subrequests", _SUBREQUESTS_LIMIT),
        isolation=_isolation(metadata.get("belem")),
    )


def _check_variables(variables: Mapping[str, Json]) -> None:
    """Hold variables and secrets to their number and sizes; no value is ever shown."""
    if len(variables) > VARIABLES_LIMIT:
        raise TooManyVariables(
            f"There are {len(variables)} variables and secrets; the limit is {VARIABLES_LIMIT}."
        )
    for name, value in variables.items():
        size_bytes = variable_bytes(value)
        if size_bytes > VARIABLE_LIMIT_BYTES:
            raise VariableTooLarge(
                f"The variable {name} is {size_bytes} bytes; the limit is {VARIABLE_LIMIT_BYTES}."
            )


async def _metadata(form: FormData) -> Mapping[str, Json]:
    part = form.get("metadata")
    if part is None:
        raise BadMetadata("The upload has no part with the name metadata.")
    text = await part.read(_METADATA_LIMIT_BYTES + 1) if isinstance(part, UploadFile) else part
    if len(text) > _METADATA_LIMIT_BYTES:
        raise UploadTooLarge(f"The metadata is over the limit of {_METADATA_LIMIT_BYTES} bytes.")
    try:
        value: Json = json.loads(text)
        json.dumps(value, allow_nan=False)  # NaN and 1e999 are read, but no guest could have them
    except (ValueError, RecursionError) as error:
        raise BadMetadata(f"The metadata is not JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise BadMetadata("The metadata is not a JSON object.")
    return value


async def _modules(form: FormData) -> Mapping[str, str]:
    modules: dict[str, str] = {}
    for field, part in form.multi_items():
        if field == "metadata" or not isinstance(part, UploadFile):
            continue
        name, media_type = part.filename or field, _media_type(part)
        if media_type == _SOURCE_MAP_TYPE:
            continue  # stacks are mapped where the sources are
        if name in modules:
            raise BadMetadata(f"Two modules have the name {name!r}.")
        modules[name] = await _module(name, media_type, part)
    return modules


def _media_type(part: UploadFile) -> str:
    return (part.content_type or "").partition(";")[0].strip().lower()


async def _module(name: str, media_type: str, part: UploadFile) -> str:
    if media_type not in _MODULE_TYPES:
        raise BadMetadata(
            f"The module {name!r} has the type {media_type!r}; "
            f"this host takes {', '.join(_MODULE_TYPES)}."
        )
    try:
        return (await part.read()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadMetadata(f"The module {name!r} is not UTF-8: {error}") from error


def _bindings(value: Json) -> tuple[tuple[Binding, ...], dict[str, Json]]:
    bindings: list[Binding] = []
    variables: dict[str, Json] = {}
    for entry in _sequence(value, "bindings"):
        if not isinstance(entry, Mapping):
            raise BadMetadata("A binding is not a JSON object.")
        name, type_ = entry.get("name"), entry.get("type")
        if not isinstance(name, str) or _BINDING_NAME.fullmatch(name) is None:
            raise UnknownBinding(f"A binding has the name {name!r}; it must be an identifier.")
        if name in variables or any(binding.name == name for binding in bindings):
            raise UnknownBinding(f"Two bindings have the name {name!r}.")
        match type_:
            case "plain_text" | "secret_text":
                variables[name] = _text(entry.get("text"), name)
            case "json":
                variables[name] = entry.get("json")
            case "ai":
                bindings.append(Binding(name, "ai"))
            case "kv_namespace":
                bindings.append(Binding(name, "kv_namespace", _namespace_id(entry, name)))
            case _:
                raise UnknownBinding(
                    f"The binding {name} has the type {type_!r}; this host has ai, json, "
                    "kv_namespace, "
                    f"plain_text and secret_text."
                )
    return tuple(bindings), variables


def _namespace_id(entry: Mapping[str, Json], name: str) -> str | None:
    value = entry.get("namespace_id")
    if value is None:
        return None
    if not isinstance(value, str) or _NAMESPACE_ID.fullmatch(value) is None:
        raise UnknownBinding(
            f"The KV binding {name} has the namespace id {value!r}; use letters, digits, - and _, "
            "at most 64."
        )
    return value


def _text(value: Json, name: str) -> str:
    if not isinstance(value, str):
        raise UnknownBinding(f"The text binding {name} has no text.")
    return value


def _strings(value: Json, field: str) -> tuple[str, ...]:
    strings = [entry for entry in _sequence(value, field) if isinstance(entry, str)]
    if len(strings) != len(_sequence(value, field)):
        raise BadMetadata(f"{field} must be a list of strings.")
    return tuple(strings)


def _sequence(value: Json, field: str) -> Sequence[Json]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise BadMetadata(f"{field} must be a list.")
    return value


def _limit(limits: Json, name: str, most: int) -> int | None:
    if limits is None:
        return None
    if not isinstance(limits, Mapping):
        raise ApiError(f"limits is {limits!r}; it must be an object.")
    value = limits.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ApiError(f"limits.{name} is {value!r}; it must be from 1 to {most}.")
    return value


def _isolation(own: Json) -> Isolation:
    """Read the one field that Cloudflare's metadata has not."""
    if own is None:
        return "shared"
    value = own.get("isolation", "shared") if isinstance(own, Mapping) else own
    if value == "shared" or value == "request":
        return value
    raise BadMetadata(f'belem.isolation is {value!r}; it must be "shared" or "request".')
