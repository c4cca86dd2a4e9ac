"""The composition: from what a worker is (an `Upload`) to something that runs.

The one place in a server process that knows both isolates and bindings.
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Final

from belem.bindings.ai import AIBinding, InferenceClient
from belem.bindings.aiokv import SQLiteStore, Store
from belem.bindings.crypto import Crypto
from belem.bindings.fetch import Fetch
from belem.bindings.kv import KVNamespace, namespace_id
from belem.isolates import Capability, Event, Guest, Host, Limits, LogLine, Program, Script
from belem.isolates.guests.js import javascript
from belem.runtime.control import Binding, Upload
from belem.runtime.server.pool import Revision
from belem.sdk import Json

__all__ = ["Composer", "extension_scripts", "open_composer"]

# The guest halves of the bindings are part of the base image, which all workers share.
_EXTENSIONS: Final = ("kv", "ai")
_GUEST_TYPES: Final = {"ai": "ai", "kv_namespace": "kv"}


@dataclass(frozen=True, slots=True)
class Composer:
    """What the workers of one process share."""

    host: Host
    store: Store
    ai: AIBinding
    crypto: Crypto
    guest: Guest
    limits: Limits
    allow_private_fetch: bool

    async def build(self, upload: Upload, *, version: str, own_namespaces: bool) -> Revision:
        """Build the worker's image and gather its capabilities; raise `LoadError` if it fails.

        `own_namespaces` keeps a KV namespace without an id apart from other workers' of the same
        name.
        """
        limits = self.limits
        if upload.cpu_ms is not None:
            limits = replace(limits, cpu_ms=upload.cpu_ms)
        if upload.subrequests is not None:
            limits = replace(limits, subrequests=upload.subrequests)
        program = Program(
            main=upload.main_module,
            modules=upload.modules,
            configuration=_configuration(upload, limits),
        )
        image = await self.host.build(self.guest, program, limits)
        # Connections of its own: one worker's slow peers must not hold up another's requests.
        fetch = Fetch(allow_private=self.allow_private_fetch)
        capabilities: dict[str, Capability] = {"crypto": self.crypto, "fetch": fetch}
        worker = upload.worker if own_namespaces else None
        for binding in upload.bindings:
            name = f"{_GUEST_TYPES[binding.type]}:{binding.name}"
            capabilities[name] = self._capability(binding, worker)
        return Revision(
            version, image, capabilities, limits, resources=(fetch,), isolation=upload.isolation
        )

    async def handlers(self, revision: Revision) -> Sequence[str]:
        """Return the names of the handlers that the worker exports."""
        isolate = self.host.spawn(
            revision.image, revision.capabilities, limits=revision.limits, log=_unheard
        )
        try:
            reply = await isolate.dispatch(Event("handlers"))
            return reply.head.split()
        finally:
            await isolate.aclose()

    async def warm(self) -> None:
        """Compile the engine and boot the guest, so that the first worker need not wait for it."""
        program = Program(main="warm.js", modules={"warm.js": "export default { fetch() {} }"})
        await self.host.build(self.guest, program, self.limits)

    def _capability(self, binding: Binding, worker: str | None) -> Capability:
        match binding.type:
            case "ai":
                return self.ai
            case "kv_namespace":
                name = namespace_id(binding.name, binding.namespace_id, worker=worker)
                return KVNamespace(self.store, name)


@contextlib.asynccontextmanager
async def open_composer(
    *,
    cache_directory: Path,
    kv_file: Path | Store,
    inference_address: str,
    allow_private_fetch: bool,
    limits: Limits | None = None,
) -> AsyncGenerator[Composer, None]:
    """Open what workers share. The store closes last: requests may write until the end.

    `kv_file` may be a store that is open, and stays so.
    """
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(kv_file, Path):
            kv_file.parent.mkdir(parents=True, exist_ok=True)
            store: Store = await stack.enter_async_context(SQLiteStore(kv_file))
        else:
            store = kv_file
        client = await stack.enter_async_context(InferenceClient(inference_address))
        crypto = await stack.enter_async_context(Crypto())
        host = await stack.enter_async_context(Host(cache_directory))
        yield Composer(
            host=host,
            store=store,
            ai=AIBinding(client),
            crypto=crypto,
            guest=javascript(extensions=extension_scripts()),
            limits=limits or Limits(),
            allow_private_fetch=allow_private_fetch,
        )


def extension_scripts() -> list[Script]:
    """Read the guest halves of the bindings, in the order in which they are loaded."""
    return [
        Script(
            f"belem:{name}",
            files(f"belem.bindings.{name}").joinpath("guest.js").read_text(encoding="utf-8"),
        )
        for name in _EXTENSIONS
    ]


def _unheard(_: LogLine) -> None:
    """Asking for handlers runs no code that logs, but for a getter that nobody needs to hear."""


def _configuration(upload: Upload, limits: Limits) -> Mapping[str, Json]:
    return {
        "bindings": [
            {"name": binding.name, "type": _GUEST_TYPES[binding.type]}
            for binding in upload.bindings
        ],
        "vars": upload.vars,
        "compatibility_date": upload.compatibility_date,
        "compatibility_flags": list(upload.compatibility_flags),
        "waitUntilMs": round(limits.wait_until_seconds * 1000),
    }
