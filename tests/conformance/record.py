"""Record what workerd answers to the cases, so that Belem can be held to it.

`python -m tests.conformance.record DIRECTORY`, where `npm install wrangler` was run in DIRECTORY.
Run it again when cases are added, and read the difference: another answer is a change of workerd.
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.conformance.areas import AREAS, HERE, ask
from tests.support.processes import free_port, running

_CONFIG = {
    "name": "conformance",
    "main": str(HERE / "worker.js"),
    "compatibility_date": "2026-04-01",
    "kv_namespaces": [{"binding": "KV", "id": "kv"}],
}


def main() -> None:
    wrangler = Path(sys.argv[1]) / "node_modules/.bin/wrangler"
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        config = folder / "wrangler.json"
        config.write_text(json.dumps(_CONFIG))
        command = [str(wrangler), "dev", "--config", str(config), "--port", str(port)]
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": directory, "CI": "1"}
        with running(command, folder, environment, port=port):
            for area in AREAS:
                answers = ask(f"http://127.0.0.1:{port}", area)
                text = json.dumps(answers, indent=1, ensure_ascii=False, sort_keys=True)
                (HERE / "answers" / f"{area}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
