"""Workers in real isolates, for the tests of the data plane."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal

import pytest

from belem.isolates import Limits
from belem.runtime.control import Binding, Upload
from belem.runtime.server import Composer, Revision, open_composer

Build = Callable[..., Awaitable[Revision]]


@pytest.fixture(scope="session")
def code_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the engine is compiled to, once for all tests."""
    return tmp_path_factory.mktemp("server") / "code"


@pytest.fixture
async def composer(code_cache: Path, tmp_path: Path) -> AsyncIterator[Composer]:
    async with open_composer(
        cache_directory=code_cache,
        kv_file=tmp_path / "kv.sqlite",
        inference_address=f"unix:{tmp_path}/nobody.sock",
        allow_private_fetch=True,
        limits=Limits(cpu_ms=300),
    ) as opened:
        yield opened


@pytest.fixture
def build(composer: Composer) -> Build:
    """Build a worker from the body of its fetch handler, or from a whole module."""

    async def make(
        body: str,
        *,
        version: str = "1",
        worker: str = "hello",
        bindings: tuple[Binding, ...] = (),
        variables: Mapping[str, str] | None = None,
        cpu_ms: int | None = None,
        subrequests: int | None = None,
        isolation: Literal["shared", "request"] = "shared",
    ) -> Revision:
        source = (
            body
            if "export default" in body
            else f"export default {{ async fetch(request, env, ctx) {{ {body} }} }}"
        )
        upload = Upload(
            worker=worker,
            main_module="worker.js",
            modules={"worker.js": source},
            bindings=bindings,
            vars=dict(variables or {}),
            cpu_ms=cpu_ms,
            subrequests=subrequests,
            isolation=isolation,
        )
        return await composer.build(upload, version=version, own_namespaces=True)

    return make
