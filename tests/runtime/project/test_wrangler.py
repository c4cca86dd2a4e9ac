import json
from pathlib import Path

import pytest

from belem.runtime.project import AIBinding, ConfigError, DevServer, KVBinding, Limits
from belem.runtime.project.wrangler import Config, read_config

FULL = """
// All that is read.
{
  "$schema": "./node_modules/wrangler/config-schema.json",
  "name": "shop",
  "main": "src/index.ts",
  "compatibility_date": "2026-05-01",
  "compatibility_flags": ["nodejs_compat"],
  "vars": { "LEVEL": 3, "TITLE": "Shop", "DEEP": { "a": [true, null] } },
  "kv_namespaces": [
    { "binding": "CACHE", "id": "abc" },
    { "binding": "DRAFTS", "preview_id": "def" },
    { "binding": "PLAIN" },
  ],
  "ai": { "binding": "AI", "remote": true },
  "dev": { "ip": "0.0.0.0", "port": 9000 },
  "limits": { "cpu_ms": 50, "subrequests": 100 },
  "belem": { "isolation": "request" },
  "env": {
    "staging": { "vars": { "TITLE": "Staging" }, "kv_namespaces": [{ "binding": "CACHE" }] },
    "bare": {},
    "other": { "name": "elsewhere", "main": "b.ts", "limits": { "cpu_ms": 1 } },
  },
}
"""


WRONG: list[tuple[object, str]] = [
    ({"name": "My Shop"}, '`name` is "My Shop"; it must be 1 to 63 lower-case letters'),
    ({"name": "-a"}, '`name` is "-a"; it must be'),
    ({"name": "a" * 64}, "it must be 1 to 63"),
    ({"main": 3}, "`main` is 3; it must be a string that is not empty"),
    ({"main": " "}, '`main` is " "; it must be'),
    ({"compatibility_date": "2026-13-01"}, '"2026-13-01"; it must be a date such as'),
    ({"compatibility_date": "20260101"}, "it must be a date"),
    ({"compatibility_flags": "a"}, '`compatibility_flags` is "a"; it must be an array'),
    ({"compatibility_flags": ["a", 1]}, "`compatibility_flags[1]` is 1; it must be a string"),
    ({"vars": []}, "`vars` is an array; it must be an object"),
    ({"vars": {"a-b": 1}}, '`vars (a name)` is "a-b"; it must be a JavaScript identifier'),
    ({"kv_namespaces": {}}, "`kv_namespaces` is an object; it must be an array"),
    ({"kv_namespaces": ["A"]}, '`kv_namespaces[0]` is "A"; it must be an object'),
    ({"kv_namespaces": [{}]}, "`kv_namespaces[0].binding` is null; it must be a JavaScript"),
    ({"kv_namespaces": [{"binding": "A", "id": 1}]}, "`kv_namespaces[0].id` is 1; it must be"),
    ({"ai": {"binding": "1A"}}, '`ai.binding` is "1A"; it must be a JavaScript identifier'),
    ({"ai": True}, "`ai` is true; it must be an object"),
    (
        {"dev": {"port": 65536}},
        "`dev.port` is 65536; it must be a whole number from 0 to 65535",
    ),
    ({"dev": {"port": True}}, "`dev.port` is true; it must be a whole number"),
    ({"limits": {"cpu_ms": 0}}, "`limits.cpu_ms` is 0; it must be a whole number from 1 to"),
    ({"belem": {"isolation": "none"}}, '`belem.isolation` is "none"; it must be "shared" or'),
    ({"limits": {"cpu_ms": 1.5}}, "`limits.cpu_ms` is 1.5; it must be"),
    ({"env": {"a": 1}}, "`env.a` is 1; it must be an object"),
    ([], "the file holds an array; it must hold an object"),
    ('{"vars": {"A": 1e999}}', '`vars.A` is "inf"; it must be a finite number'),
]


def read(tmp_path: Path, config: object, environment: str | None = None) -> Config:
    path = tmp_path / "wrangler.jsonc"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return read_config(path, environment)


def refusal(tmp_path: Path, config: object, environment: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, config, environment)
    return str(caught.value).replace(str(tmp_path) + "/", "")


def test_every_supported_key_is_read(tmp_path: Path) -> None:
    config = read(tmp_path, FULL)

    assert config == Config(
        name="shop",
        main="src/index.ts",
        compatibility_date="2026-05-01",
        compatibility_flags=("nodejs_compat",),
        vars={"LEVEL": 3, "TITLE": "Shop", "DEEP": {"a": [True, None]}},
        bindings=(
            KVBinding("CACHE", "abc"),
            KVBinding("DRAFTS", "def"),
            KVBinding("PLAIN", "PLAIN"),
            AIBinding("AI"),
        ),
        dev=DevServer("0.0.0.0", 9000),
        limits=Limits(50, 100),
        isolation="request",
        warnings=(),
    )


def test_toml_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "wrangler.toml"
    path.write_text(
        'name = "shop"\nmain = "a.js"\ncompatibility_date = "2026-05-01"\n[vars]\nA = 1\n'
        '[[kv_namespaces]]\nbinding = "CACHE"\nid = "abc"\n[ai]\nbinding = "AI"\n'
    )

    config = read_config(path, None)

    assert (config.name, config.main, config.vars) == ("shop", "a.js", {"A": 1})
    assert config.bindings == (KVBinding("CACHE", "abc"), AIBinding("AI"))


def test_an_environment_inherits_all_but_vars_and_bindings(tmp_path: Path) -> None:
    config = read(tmp_path, FULL, "staging")

    assert config.name == "shop-staging"
    assert (config.main, config.compatibility_date) == ("src/index.ts", "2026-05-01")
    assert config.compatibility_flags == ("nodejs_compat",)
    assert config.limits == Limits(50, 100)
    assert config.vars == {"TITLE": "Staging"}
    assert config.bindings == (KVBinding("CACHE", "CACHE"),)
    assert config.warnings == (
        "wrangler.jsonc: `ai` is at the top level but not in `env.staging`, "
        "and environments do not inherit it.",
    )


def test_an_environment_may_say_other_things(tmp_path: Path) -> None:
    config = read(tmp_path, FULL, "other")

    assert (config.name, config.main, config.limits) == ("elsewhere", "b.ts", Limits(1, None))
    assert config.bindings == ()


def test_an_environment_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, FULL, "stagin") == (
        "wrangler.jsonc: there is no environment `stagin` (did you mean `staging`?); "
        "there are: `staging`, `bare`, `other`."
    )


def test_known_keys_that_are_not_supported_warn_once_each(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        {"observability": {"enabled": True}, "d1_databases": [], "dev": {"inspector_port": 1}},
    )

    assert config.warnings == (
        "wrangler.jsonc: `observability` is not supported yet; it is ignored.",
        "wrangler.jsonc: `d1_databases` is not supported yet; it is ignored.",
        "wrangler.jsonc: `dev.inspector_port` is not supported yet; it is ignored.",
    )


def test_keys_about_an_account_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "wrangler.json"
    path.write_text('{"main": "a.js", "account_id": "x", "workers_dev": true, "keep_vars": true}')

    assert read_config(path, None).warnings == ()


def test_unknown_keys_warn_with_a_guess(tmp_path: Path) -> None:
    config = read(tmp_path, {"compatability_date": "x", "zzzz": 1, "dev": {"prot": 1}})

    assert config.warnings == (
        "wrangler.jsonc: unknown key `compatability_date` (did you mean `compatibility_date`?); "
        "it is ignored.",
        "wrangler.jsonc: unknown key `zzzz`; it is ignored.",
        "wrangler.jsonc: unknown key `dev.prot` (did you mean `port`?); it is ignored.",
    )


@pytest.mark.parametrize(("config", "message"), WRONG)
def test_wrong_values_are_refused_with_what_is_allowed(
    tmp_path: Path, config: object, message: str
) -> None:
    text = refusal(tmp_path, config)

    assert text.startswith("wrangler.jsonc: ")
    assert message in text


def test_an_error_in_an_environment_names_it(tmp_path: Path) -> None:
    config = {"env": {"a": {"kv_namespaces": [{"binding": 1}]}}}

    assert "`env.a.kv_namespaces[0].binding` is 1;" in refusal(tmp_path, config, "a")


@pytest.mark.parametrize(
    "config",
    [
        {"vars": {"A": 1}, "ai": {"binding": "A"}},
        {"kv_namespaces": [{"binding": "A"}, {"binding": "A"}]},
        {"kv_namespaces": [{"binding": "A"}], "ai": {"binding": "A"}},
    ],
)
def test_a_name_is_given_once(tmp_path: Path, config: object) -> None:
    assert "`A` is given to two of" in refusal(tmp_path, config)


def test_broken_json_is_shown_with_its_place(tmp_path: Path) -> None:
    text = refusal(tmp_path, '{\n  "name": "a"\n  "main": "b"\n}')

    assert text.startswith("wrangler.jsonc:3:3: Expecting ',' delimiter.\n")
    assert '> 3 |   "main": "b"\n    |   ^' in text


def test_broken_toml_is_shown_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "wrangler.toml"
    path.write_text('name = "a"\nmain = \n')

    with pytest.raises(ConfigError, match="at line 2"):
        read_config(path, None)


def test_a_toml_date_is_refused_with_the_mend(tmp_path: Path) -> None:
    path = tmp_path / "wrangler.toml"
    path.write_text("compatibility_date = 2026-05-01\n")

    with pytest.raises(ConfigError, match="write a date in quotes"):
        read_config(path, None)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    assert "the limit is 1048576 bytes" in refusal(tmp_path, "{" + " " * (1 << 20) + "}")


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrangler.json"
    path.write_bytes(b'{"name": "\xff"}')

    with pytest.raises(ConfigError, match="is not UTF-8"):
        read_config(path, None)


def test_a_remote_namespace_is_local(tmp_path: Path) -> None:
    config = read(tmp_path, {"kv_namespaces": [{"binding": "A", "remote": True}]})

    assert config.warnings == (
        "wrangler.jsonc: `kv_namespaces[0].remote` is not supported; `A` is local.",
    )


def test_an_environment_of_a_config_without_any_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "wrangler.json"
    path.write_text("{}")

    with pytest.raises(ConfigError, match="no environment `prod`; the config has no `env`"):
        read_config(path, "prod")
