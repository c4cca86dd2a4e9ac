"""One host, attacked by worker after worker; a neighbour on it has to go on answering."""

import asyncio
import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.e2e.serving import Served
from tests.support.processes import free_port

NEIGHBOUR = "export default { fetch() { return new Response('still here') } }"
PATIENCE_SECONDS = 5.0
# One attack ends an isolate, or is answered; but it always ends.
ATTACK_SECONDS = 60.0


@dataclass
class Host:
    """A host process, with a neighbour deployed."""

    served: Served

    def deploy(self, source: str) -> None:
        """Deploy the attacker, with little CPU time to burn."""
        folder = self.served.folder / "attacker"
        folder.mkdir(exist_ok=True)
        (folder / "worker.js").write_text(source)
        config = {
            "name": "attacker",
            "main": "worker.js",
            "compatibility_date": "2026-11-01",
            "kv_namespaces": [{"binding": "NOTES"}],
            "limits": {"cpu_ms": 300},
        }
        (folder / "wrangler.json").write_text(json.dumps(config))
        deployed = self.served.belem("deploy", "attacker")
        assert deployed.returncode == 0, deployed.stderr

    async def attack(self, *, times: int = 3) -> list[tuple[int, str]]:
        """Ask the attacker some times at once while the neighbour is asked without pause."""
        limits = httpx.Limits(max_keepalive_connections=0)
        url = f"http://127.0.0.1:{self.served.port}"
        async with httpx.AsyncClient(trust_env=False, base_url=url, limits=limits) as client:

            async def ask() -> tuple[int, str]:
                answer = await client.get("/attacker/", timeout=ATTACK_SECONDS)
                return answer.status_code, answer.text

            attacks = [asyncio.create_task(ask()) for _ in range(times)]
            answered = 0
            while not all(attack.done() for attack in attacks) or answered < 10:
                answer = await client.get("/hello/", timeout=PATIENCE_SECONDS)
                assert (answer.status_code, answer.text) == (200, "still here")
                answered += 1
            results = await asyncio.gather(*attacks, return_exceptions=True)
        assert self.served.supervisor is not None
        assert self.served.supervisor.poll() is None
        return [(0, repr(r)) if isinstance(r, BaseException) else r for r in results]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Generator[Host, None, None]:
    folder: Path = tmp_path_factory.mktemp("attacked")
    served = Served(folder, free_port(), free_port(), ())
    with served.serve():
        served.deploy(NEIGHBOUR)
        yield Host(served)
