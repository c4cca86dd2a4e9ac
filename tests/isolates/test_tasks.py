"""Tasks of an isolate: all are ended, and each has begun before it is."""

import asyncio
import logging

import pytest

from belem.isolates.tasks import Tasks


async def test_a_task_cancelled_before_it_began_still_cleans_up() -> None:
    tasks = Tasks(asyncio.get_running_loop())
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append("yes")

    tasks.start(work())
    tasks.cancel()
    await tasks.wait()

    assert cleaned == ["yes"]


async def test_nothing_starts_after_the_end() -> None:
    tasks = Tasks(asyncio.get_running_loop())
    tasks.cancel()

    with pytest.raises(RuntimeError, match="has ended"):
        tasks.start(asyncio.sleep(0))


async def test_a_task_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks(asyncio.get_running_loop())

    async def broken() -> None:
        raise ValueError("oh")

    with caplog.at_level(logging.ERROR):
        await asyncio.wait([tasks.start(broken())])
        await asyncio.sleep(0)

    assert "isolate_task_failed" in caplog.text
