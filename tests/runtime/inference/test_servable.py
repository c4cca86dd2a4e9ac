"""The life of servables, with loads that a test holds and lets go."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from belem.runtime.inference.device import Device, DeviceThread
from belem.runtime.inference.errors import (
    BadModelFile,
    Draining,
    InferenceFailed,
    WeightsMissing,
)
from belem.runtime.inference.servable import (
    Servable,
    ServableManager,
    ServableState,
    load_text_model,
)
from belem.runtime.inference.store import Entry
from belem.runtime.inference.text.text_model import TextLimits, TextModel
from tests.runtime.inference.tiny_llama import TinyLlama

LIMITS = TextLimits(slots=1, context_tokens=32)


class HeldLoads:
    """Loads that wait until a test lets them go."""

    def __init__(self, model: TextModel) -> None:
        self.go = threading.Event()
        self.count = 0
        self.failure: Exception | None = None
        self._model = model

    def __call__(self, path: Path, /) -> TextModel:
        self.count += 1
        assert self.go.wait(20)
        if self.failure is not None:
            raise self.failure
        return self._model


@pytest.fixture(scope="module")
def thread(cpu: Device) -> DeviceThread:
    return DeviceThread(cpu)


@pytest.fixture
def loads(tiny: TinyLlama, cpu: Device, thread: DeviceThread) -> HeldLoads:
    return HeldLoads(TextModel(tiny.path, device=cpu, thread=thread, limits=LIMITS))


@pytest.fixture
def entry(tiny: TinyLlama) -> Entry:
    return Entry("@cf/meta/tiny", "tiny", "text-generation", tiny.path, 96, stand_in=True)


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
async def manager(loads: HeldLoads, lines: list[str]) -> AsyncIterator[ServableManager]:
    async with ServableManager(loads, say=lines.append) as manager:
        yield manager
        loads.go.set()


def test_states_move_forward_only() -> None:
    servable = Servable("tiny")
    servable.move(ServableState.LOADING)
    servable.move(ServableState.AVAILABLE)

    for state in (ServableState.START, ServableState.LOADING, ServableState.AVAILABLE):
        with pytest.raises(InferenceFailed, match="cannot go from AVAILABLE"):
            servable.move(state)


async def test_a_servable_is_loading_until_it_is_available(
    manager: ServableManager, loads: HeldLoads, entry: Entry, lines: list[str]
) -> None:
    assert manager.find("tiny") is None

    servable = manager.start(entry)
    await asyncio.sleep(0)
    assert servable.state is ServableState.LOADING

    loads.go.set()
    model = await manager.acquire(entry)
    assert (servable.state, servable.model) == (ServableState.AVAILABLE, model)
    assert lines[0] == "tiny: loading tiny.gguf"
    assert lines[1].startswith("tiny: available after ")


async def test_those_who_ask_at_once_share_one_load(
    manager: ServableManager, loads: HeldLoads, entry: Entry
) -> None:
    asking = [asyncio.create_task(manager.acquire(entry)) for _ in range(5)]
    await asyncio.sleep(0)
    loads.go.set()

    models = await asyncio.gather(*asking)

    assert loads.count == 1
    assert len(set(map(id, models))) == 1


async def test_one_who_gives_up_does_not_stop_the_load(
    manager: ServableManager, loads: HeldLoads, entry: Entry
) -> None:
    impatient = asyncio.create_task(manager.acquire(entry))
    patient = asyncio.create_task(manager.acquire(entry))
    await asyncio.sleep(0)

    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    loads.go.set()

    assert await patient is not None
    assert loads.count == 1


async def test_a_failed_load_is_told_to_all_and_tried_again_when_asked_again(
    manager: ServableManager, loads: HeldLoads, entry: Entry, lines: list[str]
) -> None:
    loads.failure = BadModelFile("tiny.gguf: it is truncated.")
    loads.go.set()
    for _ in range(2):
        with pytest.raises(BadModelFile, match="truncated"):
            await manager.acquire(entry)
    servable = manager.find("tiny")
    assert servable is not None
    assert servable.state is ServableState.END

    loads.failure = None
    assert await manager.acquire(entry) is not None
    assert loads.count == 3
    assert lines[1] == "tiny: tiny.gguf: it is truncated."


async def test_an_unforeseen_failure_of_a_load_is_told(
    manager: ServableManager, loads: HeldLoads, entry: Entry
) -> None:
    loads.failure = MemoryError("out")
    loads.go.set()

    with pytest.raises(InferenceFailed, match="MemoryError: out"):
        await manager.acquire(entry)


async def test_weights_that_were_not_pulled_are_refused(
    manager: ServableManager, entry: Entry
) -> None:
    with pytest.raises(WeightsMissing, match=r"`belem ai pull tiny` brings them"):
        await manager.acquire(replace(entry, file=None))


async def test_closing_unloads_and_refuses(loads: HeldLoads, entry: Entry) -> None:
    loads.go.set()
    async with ServableManager(loads, say=lambda line: None) as manager:
        await manager.acquire(entry)

    servable = manager.find("tiny")
    assert servable is not None
    assert servable.state is ServableState.END
    with pytest.raises(Draining):
        manager.start(entry)


async def test_a_real_model_is_warmed_up_before_it_is_available(
    tiny: TinyLlama, cpu: Device, thread: DeviceThread
) -> None:
    model = await asyncio.to_thread(
        load_text_model, tiny.path, device=cpu, thread=thread, limits=LIMITS
    )

    assert model.backend.compiled_count == len(model.backend.warm_ups(long=False))
