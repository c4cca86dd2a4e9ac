import json
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


def test_a_dev_upload_has_secrets_over_vars_and_a_deploy_has_none(tmp_path: Path) -> None:
    (tmp_path / "worker.js").write_text(HELLO)
    (tmp_path / ".dev.vars").write_text("A=secret")
    config: dict[str, object] = {
        "name": "w",
        "main": "worker.js",
        "compatibility_date": "2026-01-01",
        "compatibility_flags": ["nodejs_compat"],
        "vars": {"A": 1, "B": {"c": []}},
        "ai": {"binding": "AI"},
        "kv_namespaces": [{"binding": "CACHE", "id": "abc"}],
    }
    (tmp_path / "wrangler.json").write_text(json.dumps(config))
    project = load_project(tmp_path)
    bundle = build_bundle(project)

    dev = upload_of(project, bundle, with_secrets=True)
    deploy = upload_of(project, bundle)

    assert json.loads(json.dumps(dev.vars)) == {"A": "secret", "B": {"c": []}}
    assert json.loads(json.dumps(deploy.vars)) == {"A": 1, "B": {"c": []}}
    assert [(b.name, b.type, b.namespace_id) for b in dev.bindings] == [
        ("CACHE", "kv_namespace", "abc"),
        ("AI", "ai", None),
    ]
    assert dev.compatibility_date == "2026-01-01"
    assert tuple(dev.compatibility_flags) == ("nodejs_compat",)
