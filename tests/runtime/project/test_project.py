import datetime
import json

import pytest

from belem.runtime.project import (
    AIBinding,
    ConfigError,
    KVBinding,
    ProjectError,
    ProjectNotFound,
    load_project,
)
from tests.runtime.project.conftest import WriteFiles

NOW = datetime.datetime(2026, 5, 17, 23, 30, tzinfo=datetime.UTC)
HANDLER = "export default { fetch() { return new Response('ok') } }"
SEED = """
// worker.ts
export interface Env {
  AI: any;
  CACHE_KV: KVNamespace;
}
"""


def config(**keys: object) -> str:
    return json.dumps({"name": "shop", "main": "a.js", "compatibility_date": "2026-01-01", **keys})


def test_a_bare_file_needs_no_config(write: WriteFiles) -> None:
    root = write({"worker.ts": SEED + HANDLER})

    project = load_project(root / "worker.ts", now=NOW)

    assert (project.root, project.main) == (root, root / "worker.ts")
    assert (project.config_path, project.name) == (None, "worker")
    assert project.compatibility_date == "2026-05-17"
    assert project.bindings == (AIBinding("AI"), KVBinding("CACHE_KV", "CACHE_KV"))
    assert project.inferred == ("AI", "CACHE_KV")
    assert project.warnings == ()


@pytest.mark.parametrize(
    ("declared", "names"),
    [
        ("", ["AI"]),
        ("interface Env { MODEL: Ai }", ["MODEL"]),
        ("interface Env { AI: Ai; OTHER: Ai }", ["AI", "OTHER"]),
        ("interface Env { AI: string }", []),
        ("interface Env { AI: KVNamespace }", ["AI"]),
        ("interface Env { TOKEN: string; B: KVNamespace; A: KVNamespace }", ["AI", "B", "A"]),
    ],
)
def test_a_bare_file_gets_what_it_declares(
    write: WriteFiles, declared: str, names: list[str]
) -> None:
    root = write({"worker.ts": declared})

    project = load_project(root / "worker.ts", now=NOW)

    assert [binding.name for binding in project.bindings] == names


def test_a_declared_binding_that_there_is_not_warns(write: WriteFiles) -> None:
    root = write({"worker.ts": "interface Env { DB: D1Database }"})

    project = load_project(root / "worker.ts", now=NOW)

    assert project.warnings == ("worker.ts: `Env.DB` is a D1Database, which is not supported yet.",)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("My Worker.js", "my-worker"),
        ("src/index.ts", "src"),
        ("über.ts", "uber"),
        ("é.ts", "e"),
        ("文.ts", "worker"),
    ],
)
def test_a_bare_file_names_the_worker(write: WriteFiles, file: str, name: str) -> None:
    root = write({file: HANDLER})

    assert load_project(root / file, now=NOW).name == name


def test_the_index_of_a_folder_is_named_after_it(write: WriteFiles) -> None:
    root = write({"src/index.js": HANDLER})

    project = load_project(root, now=NOW)

    assert (project.name, project.main, project.root) == ("shop", root / "src/index.js", root)


def test_a_bare_file_reads_its_dev_vars(write: WriteFiles) -> None:
    root = write({"worker.ts": HANDLER, ".dev.vars": "TOKEN=hunter2"})

    project = load_project(root / "worker.ts", now=NOW)

    assert project.secrets == {"TOKEN": "hunter2"}
    assert "hunter2" not in repr(project)


def test_a_folder_is_read_by_its_config(write: WriteFiles) -> None:
    root = write({"wrangler.json": config(vars={"A": 1}, ai={"binding": "AI"}), "a.js": HANDLER})

    project = load_project(root, now=NOW)

    assert project.config_path == root / "wrangler.json"
    assert (project.name, project.main) == ("shop", root / "a.js")
    assert (project.vars, project.bindings) == ({"A": 1}, (AIBinding("AI"),))
    assert project.inferred == ()


def test_a_config_is_found_above_a_file_and_the_file_is_the_main(write: WriteFiles) -> None:
    root = write({"wrangler.toml": 'name = "shop"\nmain = "a.js"', "src/deep/b.js": HANDLER})

    project = load_project(root / "src/deep/b.js", now=NOW)

    assert (project.root, project.main) == (root, root / "src/deep/b.js")
    assert project.name == "shop"


def test_a_package_ends_the_search_for_a_config(write: WriteFiles) -> None:
    root = write({"wrangler.json": config(), "inner/package.json": "{}", "inner/src/b.js": HANDLER})

    project = load_project(root / "inner/src/b.js", now=NOW)

    assert (project.config_path, project.root) == (None, root / "inner")


def test_a_config_may_be_named(write: WriteFiles) -> None:
    root = write({"other.jsonc": config() + "// fine", "a.js": HANDLER})

    assert load_project(root / "other.jsonc", now=NOW).main == root / "a.js"


def test_the_first_of_several_configs_counts(write: WriteFiles) -> None:
    root = write({"wrangler.toml": "", "wrangler.jsonc": "", "wrangler.json": config()})
    write({"a.js": HANDLER})

    project = load_project(root, now=NOW)

    assert project.config_path == root / "wrangler.json"
    assert project.warnings == (
        "wrangler.jsonc is ignored: wrangler.json in the same folder comes first.",
        "wrangler.toml is ignored: wrangler.json in the same folder comes first.",
    )


def test_dates_that_are_missing_or_to_come_warn(write: WriteFiles) -> None:
    root = write({"wrangler.json": '{"main": "a.js"}', "a.js": HANDLER})
    write({"later.json": config(compatibility_date="2027-01-01")})

    missing, later = load_project(root, now=NOW), load_project(root / "later.json", now=NOW)

    assert missing.compatibility_date == "2026-05-17"
    assert "there is no `compatibility_date`; 2026-05-17 is assumed" in missing.warnings[0]
    assert "`compatibility_date` 2027-01-01 is in the future" in later.warnings[0]


def test_an_environment_has_its_own_secrets(write: WriteFiles) -> None:
    root = write({"wrangler.json": config(env={"staging": {}}), "a.js": HANDLER})
    write({".dev.vars": "A=1", ".dev.vars.staging": "A=2"})

    project = load_project(root, environment="staging", now=NOW)

    assert (project.name, project.secrets) == ("shop-staging", {"A": "2"})


def test_a_secret_may_not_take_a_bindings_name(write: WriteFiles) -> None:
    root = write({"worker.ts": SEED, ".dev.vars": "CACHE_KV=1"})

    with pytest.raises(ConfigError, match=r"`CACHE_KV` is a binding, and \.dev\.vars gives it"):
        load_project(root / "worker.ts", now=NOW)


def test_an_environment_needs_a_config(write: WriteFiles) -> None:
    root = write({"worker.ts": SEED})

    with pytest.raises(ConfigError, match="no environment `staging`"):
        load_project(root / "worker.ts", environment="staging", now=NOW)


def test_a_path_that_is_not_there_names_its_neighbour(write: WriteFiles) -> None:
    root = write({"worker.ts": SEED})

    with pytest.raises(
        ProjectNotFound, match=r"workr\.ts is not there \(did you mean `worker\.ts`"
    ):
        load_project(root / "workr.ts", now=NOW)


def test_an_empty_folder_is_no_project(write: WriteFiles) -> None:
    with pytest.raises(ProjectNotFound, match=r"is no project: it has no wrangler\.json"):
        load_project(write({}), now=NOW)


def test_a_main_that_is_not_there_is_refused(write: WriteFiles) -> None:
    root = write({"wrangler.json": config()})

    with pytest.raises(ProjectNotFound, match=r"`main` is .*a\.js, and there is no such file"):
        load_project(root, now=NOW)


def test_a_config_without_main_says_so(write: WriteFiles) -> None:
    root = write({"wrangler.json": "{}"})

    with pytest.raises(ConfigError, match=r"there is no `main`; it must name the handler"):
        load_project(root, now=NOW)


def test_the_files_that_make_the_project_are_watched(write: WriteFiles) -> None:
    root = write({"wrangler.json": config(), "a.js": HANDLER})

    watched = load_project(root, now=NOW).watched

    assert {path.name for path in watched} == {
        "wrangler.json", "a.js", ".dev.vars", ".env", ".env.local"
    }  # fmt: skip


def test_a_config_that_may_appear_beside_a_bare_file_is_watched(write: WriteFiles) -> None:
    root = write({"worker.ts": SEED})

    assert root / "wrangler.jsonc" in load_project(root / "worker.ts", now=NOW).watched


def test_an_error_names_the_files_to_watch(write: WriteFiles) -> None:
    root = write({"wrangler.json": "{"})

    with pytest.raises(ProjectError) as caught:
        load_project(root, now=NOW)

    assert root / "wrangler.json" in caught.value.watched


@pytest.mark.parametrize(
    ("variables", "secrets", "problem"),
    [
        ({"A": "é" * 2_561}, "", r"variable `A` is 5122 bytes; the limit is 5120\."),
        ({"A": ["x" * 5_120]}, "", r"variable `A` is 5124 bytes"),
        ({}, f"TOKEN={'s' * 5_121}", r"variable `TOKEN` is 5121 bytes"),
        ({f"N{n}": n for n in range(128)}, "ONE_MORE=1", r"129 variables and secrets; the limit"),
    ],
)
def test_variables_are_held_to_their_number_and_sizes(
    write: WriteFiles, variables: object, secrets: str, problem: str
) -> None:
    root = write({"wrangler.json": config(vars=variables), "a.js": HANDLER, ".dev.vars": secrets})

    with pytest.raises(ConfigError, match=problem) as caught:
        load_project(root, now=NOW)

    assert "sss" not in str(caught.value)
