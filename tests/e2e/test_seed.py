"""The seed's own worker, word for word, as a bare file without a config."""

import hashlib

import pytest

from tests.e2e.conftest import EXAMPLE, DevServer

pytestmark = pytest.mark.weights

SEED = (EXAMPLE / "seed" / "worker.ts").read_text()

UNKNOWN_MODEL = """
export default {
  async fetch(request, env) {
    try {
      return Response.json(await env.AI.run("@cf/nobody/nothing", { prompt: "x" }));
    } catch (error) {
      return Response.json({ name: error.name, message: error.message });
    }
  },
};
"""


def test_every_prompt_shares_one_cache_entry_as_on_workers(dev: DevServer) -> None:
    # Its key is `hash:${arrayBuffer}`, and that is the text "hash:[object ArrayBuffer]".
    server = dev("worker.ts", {"worker.ts": SEED})
    with server.client() as client:
        first = client.post("/", json={"prompt": "Name a city."})
        other = client.post("/", json={"prompt": "Name a river."})
        get = client.get("/")
        broken = client.post("/", content=b"{")

    assert (first.status_code, first.headers["x-cache"]) == (200, "MISS")
    assert first.json()["response"]
    assert (other.status_code, other.headers["x-cache"]) == (200, "HIT")
    assert other.json() == first.json()
    assert (get.status_code, get.text) == (405, "Method Not Allowed")
    assert broken.status_code == 500
    assert "1101" in broken.text


def test_a_bare_file_is_said_to_have_what_its_env_declares(dev: DevServer) -> None:
    server = dev("worker.ts", {"worker.ts": SEED})

    server.wait_for_output("Ready on")
    assert "env.AI " in server.output
    assert 'env.CACHE_KV  KV namespace "CACHE_KV"' in server.output


def test_an_unknown_model_is_error_5007(dev: DevServer) -> None:
    server = dev("worker.js", {"worker.js": UNKNOWN_MODEL})
    with server.client() as client:
        error = client.get("/").json()

    assert error["message"].startswith("5007: ")
    assert "@cf/nobody/nothing" in error["message"]


def test_the_seed_stays_word_for_word() -> None:
    digest = hashlib.sha256(SEED.encode()).hexdigest()

    assert digest == "ee675c2358b04d3c8fa5695e0f189aa578bb5ce2f3e8085de9a5def5a0fc6136"
