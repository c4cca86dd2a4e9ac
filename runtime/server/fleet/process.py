"""A host process as its supervisor holds it: started, spoken to, ended for certain."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from belem.runtime.server.fleet.channel import Answer, Channel, Handler, open_channel
from belem.runtime.server.fleet.errors import HostLost
from belem.runtime.server.fleet.frames import PAYLOAD_LIMIT_BYTES
from belem.runtime.server.fleet.orders import DRAIN
from belem.sdk import Json

__all__ = ["COMMAND", "HostProcess"]

# -P: what lies in the folder where the host was started is not to be imported.
COMMAND: Final = (sys.executable, "-P", "-m", "belem.runtime.server.fleet")

_ORDER_TIMEOUT_SECONDS: Final = 5.0


class HostProcess:
    """One child process. `ended` is set once it is gone and reaped.

    It is a fresh interpreter: a fork of a process with threads would inherit their locks. It gets
    one end of a socket pair and the listening socket, and nothing else that is open here.
    """

    def __init__(self, process: asyncio.subprocess.Process, channel: Channel) -> None:
        self._process = process
        self._channel = channel
        self._stack = contextlib.AsyncExitStack()
        self.ended = asyncio.Event()

    @classmethod
    async def start(
        cls,
        listener: socket.socket,
        handler: Handler,
        *,
        shares: int | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        command: Sequence[str] = COMMAND,
        concurrency: int = 64,
        payload_limit_bytes: int = PAYLOAD_LIMIT_BYTES,
    ) -> Self:
        """Start a process that will accept on `listener`; raise `HostLost` if none starts.

        `shares` is the descriptor of what it knows of others that accept there. With a `folder`, it
        writes to no other one, and reads only what a program has to.
        """
        ours, theirs = socket.socketpair()
        given = {"--channel": theirs.fileno(), "--listener": listener.fileno()}
        if shares is not None:
            given["--shares"] = shares
        options = [f"{option}={descriptor}" for option, descriptor in given.items()]
        if folder is not None:
            options.append(f"--folder={folder}")
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                *options,
                f"--parent={os.getpid()}",
                pass_fds=list(given.values()),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                # Ctrl-C in a terminal is for the supervisor, which drains its hosts.
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise HostLost(f"No host process can be started: {error}") from error
        finally:
            theirs.close()
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(_kill, process)
            channel = await stack.enter_async_context(
                open_channel(
                    ours, handler, concurrency=concurrency, payload_limit_bytes=payload_limit_bytes
                )
            )
            host = cls(process, channel)
            watching = asyncio.create_task(host._watch())
            stack.push_async_callback(asyncio.wait, [watching])
            stack.callback(_kill, process)
            host._stack = stack.pop_all()
        return host

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def how_it_ended(self) -> str:
        """Return what there is to say of the end."""
        status = self._process.returncode
        if status is None:
            return "runs"
        return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"

    async def call(
        self,
        method: str,
        values: Mapping[str, Json] | None = None,
        payload: bytes = b"",
        *,
        timeout_seconds: float,
    ) -> Answer:
        """Ask the process; raise `HostLost` or `HostSilent`, or what it raised."""
        return await self._channel.call(method, values, payload, timeout_seconds=timeout_seconds)

    async def drain(self, *, grace_seconds: float) -> None:
        """Let the process finish what is in flight, and end; kill it after the grace."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                with contextlib.suppress(HostLost):
                    await self.call(DRAIN, timeout_seconds=_ORDER_TIMEOUT_SECONDS)
                await self.ended.wait()
        await self.aclose()

    def kill(self) -> None:
        """End the process now."""
        _kill(self._process)

    async def aclose(self) -> None:
        """End the process, if it runs, and wait until it is gone. Safe to call twice."""
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _watch(self) -> None:
        await self._process.wait()
        self.ended.set()


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
