from pathlib import Path

import pytest

from belem.runtime.control.projects import upload_of
from belem.runtime.project import build_bundle, load_project

HELLO = "export default { fetch() { return new Response('one') } }"
ASKS = "export default { fetch: (request, env) => env.AI.run('@cf/x/y', { prompt: 'z' }) }"
CONFIG = '{"name": "w", "main": "worker.js", "ai": {"binding": "AI"}}'


def bindings(folder: Path, source: str, config: str | None = None) -> list[str]:
    (folder / "worker.js").write_text(source)
    if config is not None:
        (folder / "wrangler.json").write_text(config)
    project = load_project(folder / "worker.js")
    return [binding.name for binding in upload_of(project, build_bundle(project)).bindings]


@pytest.mark.parametrize(
    ("source", "config", "expected"),
    [
        (HELLO, None, []),
        (HELLO.replace("one", "FAIR AIM"), None, []),
        (ASKS, None, ["AI"]),
        (HELLO, CONFIG, ["AI"]),
    ],
    ids=["bare, silent", "bare, other words", "bare, asks", "configured"],
)
def test_a_bare_file_has_ai_only_where_it_asks_for_it(
    tmp_path: Path, source: str, config: str | None, expected: list[str]
) -> None:
    assert bindings(tmp_path, source, config) == expected
