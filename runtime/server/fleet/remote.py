"""What a process of one tenant has instead of files: its version and its KV, over the channel."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from belem.bindings.aiokv import (
    MAX_PAGE_KEYS,
    MAX_VALUE_BYTES,
    Entry,
    Key,
    Page,
    StoreClosed,
    StoreFailed,
)
from belem.runtime.control import Version
from belem.runtime.server.fleet import orders
from belem.runtime.server.fleet.channel import Answer, Channel
from belem.runtime.server.fleet.errors import HostLost, HostSilent, RemoteFault
from belem.runtime.server.fleet.uploads import decode_version
from belem.sdk import Json

__all__ = ["ChannelStore", "ChannelVersions"]

_TIMEOUT_SECONDS: Final = 30.0


class ChannelVersions:
    """The active version of this process's worker."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def active(self, worker: str) -> Version | None:
        """Return the active version, or None; no other worker's is given."""
        answer = await self._channel.call(
            orders.ACTIVE, {"worker": worker}, timeout_seconds=_TIMEOUT_SECONDS
        )
        return decode_version(answer.payload) if answer.payload else None


class ChannelStore:
    """Implement aiokv's `Store` over the channel; the front has the file, and checks namespaces."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._closed = False

    async def get(self, namespace: str, key: str) -> Entry | None:
        """Return the entry, or None when there is none or it has expired."""
        return (await self.get_many(namespace, [key])).get(key)

    async def get_many(
        self, namespace: str, keys: Sequence[str], *, limit_bytes: int = MAX_VALUE_BYTES
    ) -> dict[str, Entry]:
        """Return the entries that exist, seen at one moment."""
        answer = await self._call(
            orders.KV_GET, {"namespace": namespace, "keys": keys, "limit_bytes": limit_bytes}
        )
        entries: dict[str, Entry] = {}
        start = 0
        for found in _rows(answer.values["entries"]):
            end = start + found["bytes"]
            value = answer.payload[start:end]
            entries[found["key"]] = Entry(value, found["metadata"], found["expiration"])
            start = end
        return entries

    async def put(
        self,
        namespace: str,
        key: str,
        value: bytes,
        *,
        metadata: str | None = None,
        expiration: int | None = None,
    ) -> None:
        """Keep the value; an `expiration` that is past leaves the key missing."""
        values: Mapping[str, Json] = {
            "namespace": namespace,
            "key": key,
            "metadata": metadata,
            "expiration": expiration,
        }
        await self._call(orders.KV_PUT, values, value)

    async def delete(self, namespace: str, key: str) -> None:
        """Forget the key; fine when it does not exist."""
        await self.delete_many(namespace, [key])

    async def delete_many(self, namespace: str, keys: Sequence[str]) -> None:
        """Forget the keys, all at one moment."""
        await self._call(orders.KV_DELETE, {"namespace": namespace, "keys": keys})

    async def list(
        self,
        namespace: str,
        *,
        prefix: str = "",
        limit: int = MAX_PAGE_KEYS,
        cursor: str | None = None,
    ) -> Page:
        """Return keys that begin with the prefix, from where the cursor's page ended."""
        values: Mapping[str, Json] = {
            "namespace": namespace,
            "prefix": prefix,
            "limit": limit,
            "cursor": cursor,
        }
        answer = await self._call(orders.KV_LIST, values)
        page = json.loads(answer.payload)
        return Page(tuple(Key(*row) for row in page["keys"]), page["cursor"])

    async def aclose(self) -> None:
        """Take no more calls. The channel belongs to the process, and stays open."""
        self._closed = True

    async def _call(self, method: str, values: Mapping[str, Json], payload: bytes = b"") -> Answer:
        if self._closed:
            raise StoreClosed("The store is closed.")
        try:
            return await self._channel.call(
                method, values, payload, timeout_seconds=_TIMEOUT_SECONDS
            )
        except (HostLost, HostSilent, RemoteFault) as error:
            raise StoreFailed(error.message) from error


# Any: JSON that the front wrote, which this process trusts.
def _rows(value: Any) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = value
    return rows
