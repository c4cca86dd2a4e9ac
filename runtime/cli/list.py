"""`belem list`: what is deployed on a host."""

import json
from pathlib import Path

import click

from belem.runtime.cli.hosts import connect, host_options

__all__ = ["list"]


@click.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@host_options
def list(*, as_json: bool, url: str, token: str | None, token_file: Path | None) -> None:
    """List the workers of a host."""
    with connect(url, token, token_file) as client:
        workers = client.list()
    if as_json:
        click.echo(json.dumps(workers, indent=2))
        return
    if not workers:
        click.echo("No workers yet. Deploy one with: belem deploy PATH")
        return
    rows = [("NAME", "VERSION", "MODIFIED", "URL")]
    rows += [
        (worker["id"], str(worker["number"]), worker["modified_on"][:19], worker["url"])
        for worker in workers
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
