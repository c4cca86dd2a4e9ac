"""Serve one request with an installed `belem`, as CI does with the one from the wheel."""

import os
import sys
import tempfile
import urllib.request
from pathlib import Path

from tests.support.processes import free_port, running

_WORKER = """
export default {
  async fetch(request: Request): Promise<Response> {
    return Response.json({ path: new URL(request.url).pathname });
  },
};
"""


def main() -> None:
    belem = sys.argv[1]
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "worker.ts").write_text(_WORKER)
        command = [belem, "dev", "worker.ts", "--port", str(port)]
        with (
            running(command, folder, os.environ, port=port),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/smoke", timeout=30) as response,
        ):
            body = response.read()
    if body != b'{"path":"/smoke"}':
        sys.exit(f"the worker answered {body!r}")
    sys.stdout.write(f"{belem} served a request: {body.decode()}\n")


if __name__ == "__main__":
    main()
