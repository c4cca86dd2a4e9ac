"""Uploads and versions as bytes, for the processes that build and run them."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, cast

from belem.runtime.control import Binding, Upload, Version

__all__ = ["decode_upload", "decode_version", "encode_upload", "encode_version"]


def encode_upload(upload: Upload) -> bytes:
    """Return the upload as JSON."""
    return _json(dataclasses.asdict(upload))


def decode_upload(data: bytes) -> Upload:
    """Return the upload that a supervisor sent."""
    return _upload(_read(data))


def encode_version(version: Version) -> bytes:
    """Return the version, its upload with it, as JSON."""
    return _json(dataclasses.asdict(version))


def decode_version(data: bytes) -> Version:
    """Return the version that a supervisor sent."""
    fields = dict(_read(data))
    fields["upload"] = _upload(fields["upload"])
    return Version(**fields)


# Any: only a host process reads these, and only its supervisor writes them, from checked uploads.
def _upload(values: Mapping[str, Any]) -> Upload:
    fields = dict(values)
    fields["bindings"] = tuple(Binding(**binding) for binding in fields["bindings"])
    fields["compatibility_flags"] = tuple(fields["compatibility_flags"])
    return Upload(**fields)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _read(data: bytes) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], json.loads(data.decode("utf-8", "surrogatepass")))
