"""A project on disk: what its config, variables and handler say, checked, in one value."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from belem.runtime.project.declarations import read_env
from belem.runtime.project.discovery import Found, discover, worker_name_from
from belem.runtime.project.errors import ConfigError, ProjectNotFound
from belem.runtime.project.settings import (
    VARIABLE_LIMIT_BYTES,
    VARIABLES_LIMIT,
    AIBinding,
    Binding,
    DevServer,
    Isolation,
    KVBinding,
    Limits,
    variable_bytes,
)
from belem.runtime.project.unsupported import UNSUPPORTED_BINDINGS
from belem.runtime.project.variables import Variables, read_variables
from belem.runtime.project.wrangler import Config, read_config
from belem.sdk import Json

__all__ = ["Project", "load_project"]

_SOURCE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Project:
    """A worker's project. `root` is its folder: nothing outside it is read into the worker.

    `inferred` names the bindings that no config declared and the handler's `Env` did; `watched` are
    the files besides the code whose change makes another project. Secrets stay out of the `repr`.
    """

    root: Path
    config_path: Path | None
    name: str
    main: Path
    compatibility_date: str
    flags: tuple[str, ...]
    vars: Mapping[str, Json]
    secrets: Mapping[str, str] = field(repr=False)
    bindings: tuple[Binding, ...]
    dev: DevServer
    limits: Limits
    isolation: Isolation
    warnings: tuple[str, ...]
    inferred: tuple[str, ...]
    watched: frozenset[Path]


def load_project(
    path: Path, *, environment: str | None = None, now: datetime.datetime | None = None
) -> Project:
    """Load the project of a handler file, a folder or a wrangler config; raise ProjectError.

    `now` gives the compatibility date of a project that names none.
    """
    found = discover(path)
    today = (now or datetime.datetime.now(datetime.UTC)).date().isoformat()
    watched = {*found.searched, *([found.config] if found.config else [])}
    try:
        if found.config is not None:
            return _configured(found, found.config, environment, today, watched)
        if environment is not None:
            raise ConfigError(
                f"There is no environment `{environment}`: {found.root} has no config to name one."
            )
        return _bare(found, today, watched)
    except (ConfigError, ProjectNotFound) as error:
        error.watching(watched)
        raise


def _configured(
    found: Found, config_path: Path, environment: str | None, today: str, watched: set[Path]
) -> Project:
    config = read_config(config_path, environment)
    variables = _variables(found.root, environment, watched)
    warnings = [*found.warnings, *config.warnings]
    if config.compatibility_date is None:
        warnings.append(
            f"{config_path.name}: there is no `compatibility_date`; {today} is assumed."
        )
    elif config.compatibility_date > today:
        date = config.compatibility_date
        warnings.append(f"{config_path.name}: `compatibility_date` {date} is in the future.")
    main = found.main or _configured_main(found.root, config_path, config)
    watched.add(main)
    if not main.is_file():
        raise ProjectNotFound(f"{config_path}: `main` is {main}, and there is no such file.")
    _refuse_clashes(config.bindings, variables)
    _hold_to_limits({**config.vars, **variables.values})
    return Project(
        root=found.root,
        config_path=config_path,
        name=config.name or worker_name_from(found.root.name),
        main=main,
        compatibility_date=config.compatibility_date or today,
        flags=config.compatibility_flags,
        vars=MappingProxyType(dict(config.vars)),
        secrets=MappingProxyType(dict(variables.values)),
        bindings=config.bindings,
        dev=config.dev,
        limits=config.limits,
        isolation=config.isolation,
        warnings=tuple(warnings),
        inferred=(),
        watched=frozenset(watched),
    )


def _configured_main(root: Path, config_path: Path, config: Config) -> Path:
    if config.main is None:
        raise ConfigError(
            f'{config_path}: there is no `main`; it must name the handler, such as "src/index.ts".'
        )
    return root / config.main


def _bare(found: Found, today: str, watched: set[Path]) -> Project:
    main = found.main
    assert main is not None, "a project without a config was found by its main file"
    variables = _variables(found.root, None, watched)
    bindings, warnings = _infer(main)
    _refuse_clashes(bindings, variables)
    _hold_to_limits(variables.values)
    name = main.stem if main.stem != "index" else found.root.name
    return Project(
        root=found.root,
        config_path=None,
        name=worker_name_from(name),
        main=main,
        compatibility_date=today,
        flags=(),
        vars=MappingProxyType({}),
        secrets=MappingProxyType(dict(variables.values)),
        bindings=bindings,
        dev=DevServer(),
        limits=Limits(),
        isolation="shared",
        warnings=warnings,
        inferred=tuple(binding.name for binding in bindings),
        watched=frozenset({*watched, main}),
    )


def _infer(main: Path) -> tuple[tuple[Binding, ...], tuple[str, ...]]:
    """Return the bindings that a handler declares, and warnings of those that there are not."""
    try:
        with main.open("rb") as file:
            source = file.read(_SOURCE_BYTES).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise ProjectNotFound(f"{main} cannot be read: {error.strerror}.") from error
    members = read_env(source)
    bindings: list[Binding] = [AIBinding(member.name) for member in members if member.type == "Ai"]
    if not bindings and all(m.name != "AI" or m.type in ("any", "unknown") for m in members):
        bindings.append(AIBinding("AI"))
    bindings += [KVBinding(m.name, m.name) for m in members if m.type == "KVNamespace"]
    warnings = tuple(
        f"{main.name}: `Env.{member.name}` is a {member.type}, which is not supported yet."
        for member in members
        if member.type in UNSUPPORTED_BINDINGS
    )
    return tuple(bindings), warnings


def _variables(root: Path, environment: str | None, watched: set[Path]) -> Variables:
    variables = read_variables(root, environment)
    watched.update(variables.files)
    return variables


def _hold_to_limits(variables: Mapping[str, Json]) -> None:
    if len(variables) > VARIABLES_LIMIT:
        raise ConfigError(
            f"There are {len(variables)} variables and secrets; the limit is {VARIABLES_LIMIT}."
        )
    for name, value in variables.items():
        size_bytes = variable_bytes(value)
        if size_bytes > VARIABLE_LIMIT_BYTES:
            raise ConfigError(
                f"The variable `{name}` is {size_bytes} bytes; the limit is "
                f"{VARIABLE_LIMIT_BYTES}. Larger data fits in KV or in a module."
            )


def _refuse_clashes(bindings: tuple[Binding, ...], variables: Variables) -> None:
    for binding in bindings:
        if binding.name in variables.values:
            files = " or ".join(path.name for path in variables.read)
            raise ConfigError(
                f"`{binding.name}` is a binding, and {files} gives it a value as well."
            )
