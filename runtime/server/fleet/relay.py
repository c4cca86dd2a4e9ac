"""The front's side of what a tenant's process asks for: its own version, its own namespaces.

The process may have been taken over by its tenant. Nothing it asks for is given on its word.
"""

import json
from collections.abc import Sequence
from typing import Final

from belem.bindings.aiokv import MAX_VALUE_BYTES, InvalidArgument, InvalidKey, Store
from belem.bindings.kv import namespace_id
from belem.runtime.control import Version, VersionStore
from belem.runtime.server.fleet import orders
from belem.runtime.server.fleet.channel import Answer, Call
from belem.runtime.server.fleet.errors import ChannelBroken
from belem.runtime.server.fleet.uploads import encode_version
from belem.runtime.server.observability import Invocation, Invocations
from belem.sdk import Json

__all__ = ["TenantRelay"]

_MAX_KEYS: Final = 1_000


class TenantRelay:
    """Answer one process of one worker.

    It reaches the namespaces of the versions that it was given: requests of an earlier one may
    still be running.
    """

    def __init__(
        self, worker: str, versions: VersionStore, store: Store, invocations: Invocations
    ) -> None:
        self._worker = worker
        self._versions = versions
        self._store = store
        self._invocations = invocations
        self._namespaces: set[str] = set()

    async def handle(self, call: Call) -> Answer:
        """Do what the process asks for, if it may."""
        match call.method:
            case orders.ACTIVE:
                version = await self._versions.active(self._worker)
                if version is None:
                    return Answer()
                self._namespaces |= _namespaces(version)
                return Answer(payload=encode_version(version))
            case orders.KV_GET:
                return await self._get(call)
            case orders.KV_PUT:
                await self._store.put(
                    self._namespace(call),
                    call.text("key"),
                    call.payload,
                    metadata=_optional_text(call, "metadata"),
                    expiration=_optional_number(call, "expiration"),
                )
                return Answer()
            case orders.KV_DELETE:
                await self._store.delete_many(self._namespace(call), _keys(call))
                return Answer()
            case orders.KV_LIST:
                return await self._list(call)
            case orders.INVOCATION:
                self._publish(call)
                return Answer()
            case _:
                raise ChannelBroken(f"A host process asked for {call.method!r}.")

    async def _get(self, call: Call) -> Answer:
        found = await self._store.get_many(
            self._namespace(call),
            _keys(call),
            limit_bytes=min(_number(call, "limit_bytes"), MAX_VALUE_BYTES),
        )
        entries: list[Json] = [
            {
                "key": key,
                "bytes": len(entry.value),
                "metadata": entry.metadata,
                "expiration": entry.expiration,
            }
            for key, entry in found.items()
        ]
        payload = b"".join(entry.value for entry in found.values())
        return Answer({"entries": entries}, payload)

    async def _list(self, call: Call) -> Answer:
        page = await self._store.list(
            self._namespace(call),
            prefix=call.text("prefix"),
            limit=_number(call, "limit"),
            cursor=_optional_text(call, "cursor"),
        )
        keys = [[key.name, key.metadata, key.expiration] for key in page.keys]
        return Answer(payload=json.dumps({"keys": keys, "cursor": page.cursor}).encode())

    def _namespace(self, call: Call) -> str:
        namespace = call.text("namespace")
        if namespace not in self._namespaces:
            raise InvalidKey(f"Namespace {namespace!r} is not the worker's.")
        return namespace

    def _publish(self, call: Call) -> None:
        try:
            invocation = Invocation.from_json(call.values)
        except (KeyError, TypeError, ValueError) as error:
            raise ChannelBroken("An invocation came that is none.") from error
        if invocation.worker == self._worker:
            self._invocations.publish(invocation)


def _namespaces(version: Version) -> set[str]:
    upload = version.upload
    return {
        namespace_id(binding.name, binding.namespace_id, worker=upload.worker)
        for binding in upload.bindings
        if binding.type == "kv_namespace"
    }


def _keys(call: Call) -> Sequence[str]:
    keys = call.texts("keys")
    if len(keys) > _MAX_KEYS:
        raise InvalidArgument(f"{len(keys)} keys in one call; the limit is {_MAX_KEYS}.")
    return keys


def _number(call: Call, name: str) -> int:
    value = _optional_number(call, name)
    if value is None:
        raise ChannelBroken(f"{call.method} came without {name}.")
    return value


def _optional_number(call: Call, name: str) -> int | None:
    value = call.values.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ChannelBroken(f"{call.method} came with {name} {value!r}; it must be a number.")


def _optional_text(call: Call, name: str) -> str | None:
    return None if call.values.get(name) is None else call.text(name)
