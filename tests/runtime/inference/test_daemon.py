"""The daemon as a process: how it starts, is killed, comes back, drains and ends."""

import asyncio
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.bindings.ai.v1 import inference_pb2_grpc as pb_grpc
from tests.runtime.inference.daemon_process import ENVIRONMENT, daemon, tiny_home
from tests.runtime.inference.tiny_llama import TinyLlama

SMALL = ("--slots", "2", "--context", "64")
PATIENCE_SECONDS = 120
LONG = pb.GenerateRequest(
    model="@cf/meta/tiny", prompt="w", raw=True, max_tokens=60, temperature=3, seed=4
)


@pytest.fixture(scope="module")
def home(
    tiny: TinyLlama, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, str], list[str]]:
    return tiny_home(tmp_path_factory.mktemp("home"), tiny)


async def generate(address: str, request: pb.GenerateRequest = LONG) -> list[Any]:
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = pb_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]  # generated
        return [reply async for reply in stub.Generate(request, timeout=PATIENCE_SECONDS)]


async def test_a_killed_daemon_is_replaced_at_its_socket(
    home: tuple[dict[str, str], list[str]], tmp_path: Path
) -> None:
    environment, options = home
    path = tmp_path / "d.sock"
    options = [*options, *SMALL, "--listen", f"unix:{path}"]
    async with daemon(options, environment) as killed:
        ready = await killed.line_with("ready on")
        assert ready.split()[:3] == ["ready", "on", f"unix:{path}"]
        assert "/device:CPU:0" in ready
        assert path.stat().st_mode & 0o777 == 0o600
        before = await generate(f"unix:{path}")

        killed.process.kill()
        await killed.end()
    assert stat.S_ISSOCK(path.stat().st_mode)

    async with daemon(options, environment) as second:
        await second.line_with("ready on")
        after = await generate(f"unix:{path}")

        async with daemon(options, environment) as third:  # a live socket is not taken over
            assert await third.end() == 1
            assert any("Another process listens" in line for line in third.lines)

        second.process.terminate()
        assert await second.end() == 0
    assert not path.exists()
    assert [r for r in after if r.HasField("text")] == [r for r in before if r.HasField("text")]


async def test_health_and_reflection_answer(
    home: tuple[dict[str, str], list[str]],
) -> None:
    environment, options = home
    async with daemon([*options, *SMALL, "--listen", "127.0.0.1:0"], environment) as process:
        address = (await process.line_with("ready on")).split()[2]
        async with grpc.aio.insecure_channel(address) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            for service in ("", "belem.ai.v1.Inference"):
                reply = await health.Check(
                    health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE_SECONDS
                )
                assert reply.status == health_pb2.HealthCheckResponse.SERVING

            reflection: Any = reflection_pb2_grpc.ServerReflectionStub(channel)  # type: ignore[arg-type]  # the stubs know no aio
            question = reflection_pb2.ServerReflectionRequest(list_services="")
            async for answer in reflection.ServerReflectionInfo(iter([question])):
                listed = {service.name for service in answer.list_services_response.service}
                assert "belem.ai.v1.Inference" in listed


async def test_a_daemon_that_is_told_to_end_lets_answers_finish(
    home: tuple[dict[str, str], list[str]], tmp_path: Path
) -> None:
    environment, options = home
    address = f"unix:{tmp_path}/d.sock"
    options = [*options, *SMALL, "--listen", address, "--drain-seconds", "60"]
    async with daemon(options, environment) as process:
        await process.line_with("available")
        async with grpc.aio.insecure_channel(address) as channel:
            stub: Any = pb_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]  # generated
            call = stub.Generate(LONG, timeout=PATIENCE_SECONDS)
            started = await call.read()
            process.process.send_signal(signal.SIGTERM)
            kinds: list[str] = []
            while (reply := await call.read()) is not grpc.aio.EOF:
                kinds.append(reply.WhichOneof("event"))

        assert started.HasField("started")
        assert kinds[-1] == "finished"
        assert await process.end() == 0


async def test_a_daemon_ends_with_its_parent(
    home: tuple[dict[str, str], list[str]], tmp_path: Path
) -> None:
    environment, options = home
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE
    )
    try:
        address = f"unix:{tmp_path}/d.sock"
        options = [*options, *SMALL, "--listen", address, "--parent-pid", str(parent.pid)]
        async with daemon([*options, "--load", "lazily"], environment) as process:
            await process.line_with("ready on")
            assert process.process.returncode is None

            parent.kill()
            await parent.wait()

            assert await process.end() == 0
    finally:
        if parent.returncode is None:
            parent.kill()
        await parent.communicate()


async def test_a_daemon_whose_parent_is_gone_already_ends(
    home: tuple[dict[str, str], list[str]], tmp_path: Path
) -> None:
    environment, options = home
    gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await gone.wait()

    options = [*options, "--listen", f"unix:{tmp_path}/d.sock", "--load", "lazily"]
    async with daemon([*options, "--parent-pid", str(gone.pid)], environment) as process:
        assert await process.end() == 0


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--listen", "nowhere"), 2, "must be unix:PATH or HOST:PORT"),
        (("--catalogue", "/no/such.toml"), 1, "cannot read the catalogue"),
        (("--slots", "0"), 2, "--slots"),
    ],
)
async def test_wrong_options_are_named(options: tuple[str, ...], status: int, message: str) -> None:
    async with daemon(options) as process:
        assert await process.end() == status
        assert any(message in line for line in process.lines)


async def test_an_absent_device_is_named() -> None:
    async with daemon(["--device", "gpu:7"]) as process:
        assert await process.end() == 1
        assert any("There is no gpu:7" in line for line in process.lines)


async def test_the_daemon_goes_on_when_nobody_reads_its_lines(
    home: tuple[dict[str, str], list[str]], tmp_path: Path
) -> None:
    environment, options = home
    address = f"unix:{tmp_path}/d.sock"
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "belem.runtime.inference", "--device", "cpu", *options, *SMALL),
        *("--listen", address),
        stdout=writing,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | ENVIRONMENT | environment,
    )
    os.close(writing)
    try:
        assert b"ready on" in await asyncio.to_thread(os.read, reading, 4096)
        os.close(reading)

        assert (await generate(address))[-1].HasField("finished")
    finally:
        process.terminate()
        await process.wait()
