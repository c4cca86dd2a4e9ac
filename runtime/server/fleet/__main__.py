"""Run a host process: `python -m belem.runtime.server.fleet`. A supervisor does, nobody else."""

import argparse
import asyncio
import logging
import os
import socket
import sys
from pathlib import Path

import uvloop

from belem.runtime.server.fleet.hardening import end_with_parent, give_up_rights
from belem.runtime.server.fleet.host import run_host
from belem.runtime.server.fleet.landlock import allow_only, files_to_run, is_available
from belem.runtime.server.logs import set_up_logging


def main() -> None:
    """Run until the supervisor says so, or is gone."""
    parser = argparse.ArgumentParser()
    for option in ("--channel", "--listener", "--parent"):
        parser.add_argument(option, type=int, required=True)
    parser.add_argument("--shares", type=int)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    end_with_parent(given.parent)
    give_up_rights()
    if given.folder is not None and is_available():
        # Before there is another thread, which would keep its rights.
        allow_only(read=files_to_run(), write=[given.folder, Path(os.devnull)])
    set_up_logging()
    channel, listener = socket.socket(fileno=given.channel), socket.socket(fileno=given.listener)
    for sock in (channel, listener):
        sock.setblocking(False)
        sock.set_inheritable(False)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_host(channel, listener, given.shares))
    except Exception:  # the boundary of the process: the supervisor reads the status
        logging.getLogger("belem.host").exception("host_failed")
        sys.exit(1)


if __name__ == "__main__":
    main()
