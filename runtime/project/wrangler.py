"""Read a wrangler config: `wrangler.json`, `wrangler.jsonc` or `wrangler.toml`."""

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from belem.runtime.project.checks import (
    Checker,
    binding_name,
    boolean,
    describe,
    did_you_mean,
    integer,
    list_of,
    plain,
    table,
    text,
    worker_name,
)
from belem.runtime.project.errors import ConfigError
from belem.runtime.project.jsonc import JsoncError, parse_jsonc
from belem.runtime.project.positions import code_frame
from belem.runtime.project.settings import (
    AIBinding,
    Binding,
    DevServer,
    Isolation,
    KVBinding,
    Limits,
)
from belem.runtime.project.unsupported import ACCOUNT_KEYS, UNSUPPORTED_DEV_KEYS, UNSUPPORTED_KEYS
from belem.sdk import Json

__all__ = ["CONFIG_NAMES", "Config", "read_config"]

CONFIG_NAMES = ("wrangler.json", "wrangler.jsonc", "wrangler.toml")
"""In wrangler's order: the first of them in a folder is the one that counts."""

_CONFIG_BYTES = 1024 * 1024
# Read here; `$schema` is for editors.
# `belem` is our own table; wrangler warns of it and goes on.
_INHERITED = ("name", "main", "compatibility_date", "compatibility_flags", "limits", "belem")
_NOT_INHERITED = ("vars", "kv_namespaces", "ai")
_NOTHING: Mapping[str, Json] = {}
_ENV_KEYS = UNSUPPORTED_KEYS | ACCOUNT_KEYS | {*_INHERITED, *_NOT_INHERITED}
_KEYS = _ENV_KEYS | {"$schema", "env", "dev"}


@dataclass(frozen=True, slots=True)
class Config:
    """What a config file says, for one environment."""

    name: str | None
    main: str | None
    compatibility_date: str | None
    compatibility_flags: tuple[str, ...]
    vars: Mapping[str, Json]
    bindings: tuple[Binding, ...]
    dev: DevServer
    limits: Limits
    isolation: Isolation
    warnings: tuple[str, ...]


def read_config(path: Path, environment: str | None) -> Config:
    """Read a config file; raise ConfigError that names the file and the key."""
    checker = Checker(path)
    values = {key: plain(checker, key, value) for key, value in _parse(path).items()}
    known = checker.unknown_keys(values, "", _KEYS)
    _warn_unsupported(checker, "", [key for key in known if key in UNSUPPORTED_KEYS])
    config = _section(checker, values, "")
    environments = checker.optional(values, "env", "", table, _NOTHING)
    for name, section in environments.items():
        table(checker, f"env.{name}", section)
    if environment is None:
        return replace(config, warnings=tuple(checker.warnings))
    if environment not in environments:
        names = ", ".join(f"`{name}`" for name in environments)
        there = f"there are: {names}" if names else "the config has no `env`"
        hint = did_you_mean(environment, environments.keys())
        raise ConfigError(f"{path}: there is no environment `{environment}`{hint}; {there}.")
    section = table(checker, f"env.{environment}", environments[environment])
    return _with_environment(checker, config, values, environment, section)


def _parse(path: Path) -> Mapping[str, Json]:
    try:
        size_bytes = path.stat().st_size
        if size_bytes > _CONFIG_BYTES:
            raise ConfigError(f"{path} is {size_bytes} bytes; the limit is {_CONFIG_BYTES} bytes.")
        source = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        values = tomllib.loads(source) if path.suffix == ".toml" else parse_jsonc(source)
    except JsoncError as error:
        frame = code_frame(source, error.line, error.column)
        raise ConfigError(f"{path}:{error.line}:{error.column}: {error.reason}.\n{frame}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}.") from None
    except RecursionError:
        raise ConfigError(f"{path}: the brackets are nested too deeply.") from None
    if not isinstance(values, Mapping):
        raise ConfigError(f"{path}: the file holds {describe(values)}; it must hold an object.")
    return values


def _with_environment(
    checker: Checker,
    config: Config,
    top: Mapping[str, Json],
    environment: str,
    section: Mapping[str, Json],
) -> Config:
    """Lay an environment over the top level: all but variables and bindings is inherited."""
    at = f"env.{environment}"
    known = checker.unknown_keys(section, at, _ENV_KEYS)
    _warn_unsupported(checker, at, [key for key in known if key in UNSUPPORTED_KEYS])
    for key in _NOT_INHERITED:
        if key in top and key not in section:
            checker.warn(
                f"{checker.file.name}: `{key}` is at the top level but not in `{at}`, "
                "and environments do not inherit it."
            )
    own = _section(checker, section, at)
    named = f"{config.name}-{environment}" if config.name else None
    return Config(
        name=own.name or named,
        main=own.main or config.main,
        compatibility_date=own.compatibility_date or config.compatibility_date,
        compatibility_flags=(
            own.compatibility_flags
            if "compatibility_flags" in section
            else config.compatibility_flags
        ),
        vars=own.vars,
        bindings=own.bindings,
        dev=config.dev,
        limits=own.limits if "limits" in section else config.limits,
        isolation=own.isolation if "belem" in section else config.isolation,
        warnings=tuple(checker.warnings),
    )


def _section(checker: Checker, values: Mapping[str, Json], at: str) -> Config:
    """Check the keys that the top level and an environment have in common."""
    variables = checker.optional(values, "vars", at, table, _NOTHING)
    prefix = f"{at}." if at else ""
    for name in variables:
        binding_name(checker, f"{prefix}vars (a name)", name)
    bindings = _bindings(checker, values, at)
    _refuse_duplicates(checker, prefix, [binding.name for binding in bindings], variables)
    return Config(
        name=checker.optional(values, "name", at, worker_name, None),
        main=checker.optional(values, "main", at, text, None),
        compatibility_date=checker.optional(values, "compatibility_date", at, _date, None),
        compatibility_flags=checker.optional(values, "compatibility_flags", at, list_of(text), ()),
        vars=variables,
        bindings=bindings,
        dev=checker.optional(values, "dev", at, _dev, DevServer()),
        limits=checker.optional(values, "limits", at, _limits, Limits()),
        isolation=checker.optional(values, "belem", at, _isolation, "shared"),
        warnings=(),
    )


def _bindings(checker: Checker, values: Mapping[str, Json], at: str) -> tuple[Binding, ...]:
    none: tuple[KVBinding, ...] = ()
    bindings: list[Binding] = [*checker.optional(values, "kv_namespaces", at, list_of(_kv), none)]
    if "ai" in values:
        bindings.append(_ai(checker, f"{at}.ai" if at else "ai", values["ai"]))
    return tuple(bindings)


def _kv(checker: Checker, key: str, value: Json) -> KVBinding:
    values = table(checker, key, value)
    checker.unknown_keys(values, key, ("binding", "id", "preview_id", "remote"))
    name = binding_name(checker, f"{key}.binding", values.get("binding"))
    identifier = checker.optional(values, "id", key, text, "")
    preview = checker.optional(values, "preview_id", key, text, "")
    if checker.optional(values, "remote", key, boolean, False):
        checker.warn(f"{checker.file.name}: `{key}.remote` is not supported; `{name}` is local.")
    # Wrangler fills in an id that is left out when it deploys; until then the binding's name is
    # one.
    return KVBinding(name, identifier or preview or name)


def _ai(checker: Checker, key: str, value: Json) -> AIBinding:
    values = table(checker, key, value)
    checker.unknown_keys(values, key, ("binding", "remote", "staging"))
    checker.optional(values, "remote", key, boolean, False)
    return AIBinding(binding_name(checker, f"{key}.binding", values.get("binding")))


def _refuse_duplicates(
    checker: Checker, prefix: str, names: list[str], variables: Mapping[str, Json]
) -> None:
    seen = set(variables)
    for name in names:
        if name in seen:
            raise ConfigError(
                f"{checker.file}: `{name}` is given to two of `{prefix}vars`, "
                f"`{prefix}kv_namespaces` and `{prefix}ai`, or twice in one; names must differ."
            )
        seen.add(name)


def _dev(checker: Checker, key: str, value: Json) -> DevServer:
    values = table(checker, key, value)
    known = checker.unknown_keys(values, key, {"ip", "port", *UNSUPPORTED_DEV_KEYS})
    _warn_unsupported(checker, key, [name for name in known if name in UNSUPPORTED_DEV_KEYS])
    default = DevServer()
    return DevServer(
        host=checker.optional(values, "ip", key, text, default.host),
        port=checker.optional(values, "port", key, integer(0, 65535), default.port),
    )


def _limits(checker: Checker, key: str, value: Json) -> Limits:
    values = table(checker, key, value)
    checker.unknown_keys(values, key, ("cpu_ms", "subrequests"))
    cpu_ms, subrequests = integer(1, 300_000), integer(1, 10_000_000)
    return Limits(
        cpu_ms=checker.optional(values, "cpu_ms", key, cpu_ms, None),
        subrequests=checker.optional(values, "subrequests", key, subrequests, None),
    )


def _isolation(checker: Checker, key: str, value: Json) -> Isolation:
    values = table(checker, key, value)
    checker.unknown_keys(values, key, ("isolation",))
    chosen = values.get("isolation", "shared")
    if chosen == "shared" or chosen == "request":
        return chosen
    checker.refuse(f"{key}.isolation", chosen, '"shared" or "request"')


def _date(checker: Checker, key: str, value: Json) -> str:
    try:
        if isinstance(value, str) and len(value) == len("2026-01-31"):
            return datetime.date.fromisoformat(value).isoformat()
    except ValueError:
        pass
    checker.refuse(key, value, 'a date such as "2026-01-31"')


def _warn_unsupported(checker: Checker, at: str, keys: list[str]) -> None:
    prefix = f"{at}." if at else ""
    for key in keys:
        checker.warn(f"{checker.file.name}: `{prefix}{key}` is not supported yet; it is ignored.")
