"""The scheduler over a backend that counts, on a thread that runs when it is told to."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from belem.runtime.inference.errors import Draining, InferenceFailed, QueueFull
from belem.runtime.inference.text.backend import Logits, Row
from belem.runtime.inference.text.engine import Engine, Finished, Generation, GenerationSpec
from belem.runtime.inference.text.sampling import Sampling

VOCABULARY = 1000


class CountingBackend:
    """After token n comes token n + 1. Keeps its cache to check what it is fed."""

    def __init__(self, slots: int = 2) -> None:
        self.slots = slots
        self.context_tokens = 500
        self.bytes = 0
        self.cache: list[list[int]] = [[] for _ in range(slots)]
        self.prefills: list[tuple[int, int, int]] = []
        self.decodes: list[list[Row]] = []
        self.failure: Exception | None = None

    def prefill(self, slot: int, start: int, tokens: Sequence[int]) -> Logits:
        assert start <= len(self.cache[slot])
        self.cache[slot][start:] = tokens
        self.prefills.append((slot, start, len(tokens)))
        return self._after(tokens[-1])

    def decode(self, rows: Sequence[Row]) -> Logits:
        if self.failure is not None:
            raise self.failure
        for row in rows:
            assert row.position == len(self.cache[row.slot])
            self.cache[row.slot].append(row.token)
        self.decodes.append(list(rows))
        return np.stack([self._after(row.token) for row in rows])

    def warm_ups(self, *, long: bool) -> Sequence[Callable[[], object]]:
        return []

    def _after(self, token: int) -> Logits:
        logits = np.zeros(VOCABULARY, np.float32)
        logits[(token + 1) % VOCABULARY] = 1
        return logits


class SteppedThread:
    """Runs the jobs that were submitted one by one, when a test says so."""

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], None]] = deque()

    def submit(self, job: Callable[[], None]) -> None:
        self._jobs.append(job)

    def run(self, jobs: int = 1000) -> None:
        for _ in range(jobs):
            if not self._jobs:
                return
            self._jobs.popleft()()

    @property
    def idle(self) -> bool:
        return not self._jobs


def spec(
    prompt: Sequence[int], max_tokens: int = 5, stops: Sequence[int] = (), seed: int = 0
) -> GenerationSpec:
    return GenerationSpec(prompt, max_tokens, frozenset(stops), Sampling(seed=seed))


async def read(generation: Generation) -> list[int]:
    async with asyncio.timeout(10):
        return [token async for token in generation]


@pytest.fixture
def backend() -> CountingBackend:
    return CountingBackend()


@pytest.fixture
def thread() -> SteppedThread:
    return SteppedThread()


@pytest.fixture
def engine(backend: CountingBackend, thread: SteppedThread) -> Engine:
    return Engine(backend, thread, max_waiting=3)


async def test_a_generation_ends_at_its_length(engine: Engine, thread: SteppedThread) -> None:
    generation = engine.submit(spec([10, 11], max_tokens=3))
    thread.run()

    assert await read(generation) == [12, 13, 14]
    assert generation.finished == Finished("length", completion_tokens=3, cached_tokens=0)


async def test_a_generation_ends_at_a_stop_which_is_not_given(
    engine: Engine, thread: SteppedThread
) -> None:
    generation = engine.submit(spec([10], stops=[13]))
    thread.run()

    assert await read(generation) == [11, 12]
    assert generation.finished == Finished("stop", completion_tokens=2, cached_tokens=0)


async def test_a_stop_may_be_the_first_token(engine: Engine, thread: SteppedThread) -> None:
    generation = engine.submit(spec([10], stops=[11]))
    thread.run()

    assert await read(generation) == []
    assert generation.finished == Finished("stop", completion_tokens=0, cached_tokens=0)


async def test_nothing_is_computed_when_nothing_is_asked(
    engine: Engine, thread: SteppedThread
) -> None:
    engine.submit(spec([10]))
    thread.run()

    assert thread.idle


async def test_generations_share_steps(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    one, two = engine.submit(spec([10])), engine.submit(spec([500]))
    thread.run()

    assert [await read(one), await read(two)] == [[*range(11, 16)], [*range(501, 506)]]
    assert any(len(rows) == 2 for rows in backend.decodes)


async def test_a_generation_joins_while_another_decodes(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    first = engine.submit(spec([10], max_tokens=20))
    thread.run(5)
    second = engine.submit(spec([500], max_tokens=3))
    thread.run()

    assert await read(second) == [501, 502, 503]
    assert await read(first) == [*range(11, 31)]
    assert [len(rows) for rows in backend.decodes].count(2) == 2


async def test_those_that_wait_are_served_in_their_order(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    generations = [engine.submit(spec([100 * i], max_tokens=2)) for i in (1, 2, 3)]
    thread.run()

    assert [await read(g) for g in generations] == [[101, 102], [201, 202], [301, 302]]
    assert [slot for slot, _, _ in backend.prefills[:2]] == [0, 1]


async def test_a_long_prompt_is_fed_in_chunks_between_steps(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    first = engine.submit(spec([10], max_tokens=30))
    thread.run(3)
    second = engine.submit(spec([700] * 150, max_tokens=1))
    thread.run()

    assert await read(second) == [701]
    assert backend.prefills[1:] == [(1, 0, 64), (1, 64, 64), (1, 128, 22)]
    assert len(await read(first)) == 30


async def test_an_idle_device_takes_larger_chunks(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    engine.submit(spec([700] * 300, max_tokens=1))
    thread.run()

    assert backend.prefills == [(0, 0, 256), (0, 256, 44)]


async def test_too_many_waiting_are_refused(engine: Engine, thread: SteppedThread) -> None:
    for i in range(2):
        engine.submit(spec([i], max_tokens=400))
    thread.run(2)
    for i in range(3):
        engine.submit(spec([i]))

    with pytest.raises(QueueFull, match="Capacity temporarily exceeded, please try again"):
        engine.submit(spec([1]))


async def test_those_for_whom_a_slot_is_free_do_not_count_as_waiting(engine: Engine) -> None:
    for i in range(2 + 3):
        engine.submit(spec([i]))

    with pytest.raises(QueueFull):
        engine.submit(spec([9]))


async def test_a_closed_generation_frees_its_slot_within_a_step(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    closed, other = engine.submit(spec([10], max_tokens=400)), engine.submit(spec([500]))
    waiting = engine.submit(spec([900], max_tokens=2))
    thread.run(3)
    steps = len(backend.decodes)

    closed.close()
    thread.run()

    assert all(row.slot != 0 or row.token >= 900 for row in backend.decodes[steps][:1])
    assert await read(waiting) == [901, 902]
    assert await read(other) == [*range(501, 506)]


async def test_a_closed_generation_leaves_the_queue(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    running = [engine.submit(spec([i], max_tokens=10)) for i in (10, 20)]
    thread.run(1)
    waiting = [engine.submit(spec([i])) for i in (300, 400, 500)]

    waiting[0].close()
    thread.run(1)

    engine.submit(spec([600]))  # there is room for one again
    thread.run()
    assert all(300 not in cache for cache in backend.cache)
    assert [len(await read(g)) for g in running] == [10, 10]


async def test_closing_twice_and_after_the_end_is_allowed(
    engine: Engine, thread: SteppedThread
) -> None:
    generation = engine.submit(spec([10], max_tokens=1))
    thread.run()

    generation.close()
    generation.close()
    thread.run()

    assert await read(generation) == [11]
    assert thread.idle


async def test_a_slow_reader_pauses_only_itself(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    slow = engine.submit(spec([10], max_tokens=200))
    fast = engine.submit(spec([300], max_tokens=200))
    fast_tokens: list[int] = []
    for _ in range(30):
        thread.run(10)
        while len(fast_tokens) < 200 and not fast.finished and not thread.idle:
            fast_tokens.append(await anext(fast))
            if len(fast_tokens) % 10 == 0:
                break
    paused_at = len(backend.cache[0])

    assert paused_at < 80
    assert len(fast_tokens) > 2 * paused_at

    reading = asyncio.create_task(read(slow))
    while not reading.done():
        thread.run(1)
        await asyncio.sleep(0)
    assert await reading == [*range(11, 211)]


async def test_a_prompt_that_begins_like_one_before_is_fed_from_where_it_differs(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    engine.submit(spec([1, 2, 3, 4, 5], max_tokens=2))
    thread.run()

    again = engine.submit(spec([1, 2, 3, 90, 91], max_tokens=1))
    thread.run()

    assert await read(again) == [92]
    assert backend.prefills[-1] == (0, 3, 2)
    assert again.finished == Finished("length", completion_tokens=1, cached_tokens=3)


async def test_the_same_prompt_again_feeds_its_last_token(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    engine.submit(spec([1, 2, 3], max_tokens=2))
    thread.run()

    engine.submit(spec([1, 2, 3], max_tokens=2))
    thread.run()

    assert backend.prefills[-1] == (0, 2, 1)


async def test_an_unlike_prompt_takes_the_slot_with_the_least_to_lose(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    engine.submit(spec([1] * 50, max_tokens=1))
    thread.run()

    engine.submit(spec([7, 8], max_tokens=1))
    thread.run()

    assert backend.prefills[-1] == (1, 0, 2)


async def test_a_failing_step_ends_all_and_the_next_generation_works(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    generations = [engine.submit(spec([10 * i], max_tokens=9)) for i in (1, 2, 3)]
    thread.run(2)
    backend.failure = InferenceFailed("The device is lost.")
    thread.run()

    for generation in generations:
        with pytest.raises(InferenceFailed, match="device is lost"):
            await read(generation)

    backend.failure = None
    after = engine.submit(spec([10], max_tokens=2))
    thread.run()
    assert await read(after) == [11, 12]
    assert after.finished == Finished("length", completion_tokens=2, cached_tokens=0)


async def test_an_unforeseen_failure_is_told_without_its_details(
    engine: Engine, backend: CountingBackend, thread: SteppedThread
) -> None:
    generation = engine.submit(spec([10]))
    backend.failure = ZeroDivisionError("secret")
    thread.run()

    with pytest.raises(InferenceFailed, match=r"^The step failed: ZeroDivisionError\.$"):
        await read(generation)


async def test_jobs_that_can_wait_are_done_between_generations(
    engine: Engine, thread: SteppedThread
) -> None:
    done: list[str] = []
    generation = engine.submit(spec([10], max_tokens=3))
    engine.run_when_idle([lambda: done.append("one"), lambda: done.append("two")])

    thread.run(2)
    assert done == []
    thread.run()

    assert done == ["one", "two"]
    assert await read(generation) == [11, 12, 13]
    assert thread.idle


async def test_closing_ends_what_runs_and_refuses_what_comes(
    engine: Engine, thread: SteppedThread
) -> None:
    generation = engine.submit(spec([10], max_tokens=400))
    thread.run(3)

    engine.close()
    engine.close()
    thread.run()

    with pytest.raises(Draining):
        await read(generation)
    with pytest.raises(Draining):
        engine.submit(spec([1]))


async def test_neighbours_do_not_change_what_a_seed_draws(
    backend: CountingBackend, thread: SteppedThread
) -> None:
    class Flat(CountingBackend):
        def _after(self, token: int) -> Logits:
            return np.zeros(VOCABULARY, np.float32)

    async def draw(neighbours: int) -> list[int]:
        thread = SteppedThread()
        engine = Engine(Flat(4), thread, max_waiting=8)
        for i in range(neighbours):
            engine.submit(GenerationSpec([i], 30, frozenset(), Sampling(temperature=1, seed=i)))
        options = Sampling(temperature=1, seed=77)
        generation = engine.submit(GenerationSpec([9], 20, frozenset(), options))
        thread.run()
        return await read(generation)

    assert await draw(0) == await draw(3)


async def test_a_reader_waits_for_tokens_from_another_thread(backend: CountingBackend) -> None:
    with ThreadPoolExecutor(1) as executor:
        engine = Engine(backend, executor, max_waiting=3)
        generations = [engine.submit(spec([i], max_tokens=90)) for i in (10, 300, 500)]

        tokens = await asyncio.gather(*map(read, generations))

    assert [len(each) for each in tokens] == [90, 90, 90]
