import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belem.runtime.control import Deployments, SQLiteVersionStore, Upload, Version
from belem.runtime.control.errors import ScriptNotFound, StoreFault, ValidationFailed
from tests.runtime.control.stages import FakeStage, upload


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteVersionStore]:
    opened = SQLiteVersionStore(tmp_path)
    yield opened
    await opened.aclose()


async def test_a_deploy_is_kept_and_live(store: SQLiteVersionStore) -> None:
    stage = FakeStage()

    deployed = await Deployments(store, stage).deploy(upload())

    assert deployed.url == "http://hello.localhost:8787/"
    assert stage.live["hello"] == deployed.version == await store.active("hello")


async def test_a_worker_that_does_not_build_changes_nothing(store: SQLiteVersionStore) -> None:
    stage = FakeStage()
    deployments = Deployments(store, stage)
    before = (await deployments.deploy(upload())).version
    stage.refuse = ValidationFailed("no")

    with pytest.raises(ValidationFailed):
        await deployments.deploy(upload(source="new"))

    assert stage.live["hello"] == before == await store.active("hello")


async def test_a_build_that_cannot_be_kept_is_let_go(store: SQLiteVersionStore) -> None:
    stage = FakeStage()
    await store.aclose()

    with pytest.raises(StoreFault):
        await Deployments(store, stage).deploy(upload())

    assert stage.prepared[0].closed
    assert not stage.live


async def test_versions_go_live_in_the_order_of_the_store(store: SQLiteVersionStore) -> None:
    stage = FakeStage()
    deployments = Deployments(store, stage)

    await asyncio.gather(*(deployments.deploy(upload(source=str(n))) for n in range(10)))

    assert stage.history == list(range(1, 11))
    assert stage.live["hello"] == await store.active("hello")


async def test_a_client_that_hangs_up_does_not_split_store_and_stage(
    store: SQLiteVersionStore,
) -> None:
    stage = FakeStage()
    asked = asyncio.Event()
    proceed = asyncio.Event()

    class Held:
        """A store whose deploys wait."""

        async def deploy(self, made: Upload) -> Version:
            asked.set()
            await proceed.wait()
            return await store.deploy(made)

        list = store.list
        active = store.active
        delete = store.delete
        aclose = store.aclose

    deployments = Deployments(Held(), stage)
    deploying = asyncio.create_task(deployments.deploy(upload()))
    await asked.wait()

    deploying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deploying
    proceed.set()
    await deployments.deploy(upload(source="next"))

    assert stage.history == [1, 2]


async def test_a_deleted_worker_is_off_the_air(store: SQLiteVersionStore) -> None:
    stage = FakeStage()
    deployments = Deployments(store, stage)
    await deployments.deploy(upload())

    await deployments.delete("hello")

    assert not stage.live
    assert await deployments.list() == []
    with pytest.raises(ScriptNotFound, match="'hello'"):
        await deployments.delete("hello")
