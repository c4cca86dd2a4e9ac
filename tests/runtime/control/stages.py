"""A stage without isolates: what the control plane asked for, in order."""

import asyncio
from dataclasses import dataclass, field

from belem.runtime.control import Prepared, Upload, Version
from belem.sdk import BelemError

HELLO = "export default { fetch() { return new Response('hi') } }"


def upload(worker: str = "hello", source: str = HELLO) -> Upload:
    return Upload(worker, "worker.js", {"worker.js": source})


@dataclass
class FakePrepared:
    """A build; the stage notes when it is let go of."""

    upload: Upload
    closed: bool = False

    async def aclose(self) -> None:
        self.closed = True


@dataclass
class FakeStage:
    """Everything goes live; `refuse` makes builds fail, `gate` holds them up."""

    refuse: BelemError | None = None
    gate: asyncio.Event | None = None
    live: dict[str, Version] = field(default_factory=dict[str, Version])
    history: list[int] = field(default_factory=list[int])
    prepared: list[FakePrepared] = field(default_factory=list[FakePrepared])

    async def prepare(self, upload: Upload) -> Prepared:
        if self.gate is not None:
            await self.gate.wait()
        if self.refuse is not None:
            raise self.refuse
        made = FakePrepared(upload)
        self.prepared.append(made)
        return made

    async def go_live(self, version: Version, prepared: Prepared) -> None:
        assert isinstance(prepared, FakePrepared)
        assert prepared.upload == version.upload
        self.live[version.upload.worker] = version
        self.history.append(version.number)

    async def remove(self, worker: str) -> None:
        self.live.pop(worker, None)

    def url(self, worker: str) -> str:
        return f"http://{worker}.localhost:8787/"
