"""A real process behind a real socket, killed in mid-answer and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from belem.bindings.ai import AIBinding, InferenceClient

DAEMON = """
import asyncio, sys
from tests.bindings.ai.daemon import FakeDaemon, saying, stalling

async def main(address, name):
    script = {"saying": saying, "stalling": stalling}[name]("The capital")
    async with FakeDaemon(address, script).running():
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def daemon_process(address: str, script: str) -> Generator[subprocess.Popen[bytes], None, None]:
    process = subprocess.Popen(
        [sys.executable, "-c", DAEMON, address, script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=30)


async def test_a_killed_daemon_ends_the_answers_and_its_successor_gives_the_next(
    address: str,
) -> None:
    model = "@cf/meta/llama-3-8b-instruct"
    async with InferenceClient(address, connect_timeout_seconds=60) as client:
        binding = AIBinding(client)
        with daemon_process(address, "stalling") as process:
            streamed = await binding.run(model, {"prompt": "Hello", "stream": True}, {})
            assert streamed.stream is not None
            assert b"The capital" in await anext(streamed.stream)

            process.send_signal(signal.SIGKILL)
            tail = b"".join([chunk async for chunk in streamed.stream])

        with daemon_process(address, "saying"):
            whole = await binding.run(model, {"prompt": "Hello"}, {})

    assert tail.startswith(b'data: {"error":{"code":5012,')
    assert b"[DONE]" not in tail
    assert whole.error is None
    assert whole.result is not None
    assert whole.result["response"] == "The capital"
