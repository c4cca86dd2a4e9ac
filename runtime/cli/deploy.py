"""`belem deploy`: build a worker and make it live on a host."""

import time
from pathlib import Path

import click

from belem.runtime.cli.hosts import connect, host_options
from belem.runtime.control.projects import upload_of
from belem.runtime.project import build_bundle, load_project

__all__ = ["deploy"]


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option("--env", "environment", help="The environment of the config to deploy.")
@click.option("--name", help="Deploy under this name instead of the config's.")
@host_options
def deploy(
    path: Path,
    *,
    environment: str | None,
    name: str | None,
    url: str,
    token: str | None,
    token_file: Path | None,
) -> None:
    """Deploy the worker at PATH (a file, a folder or a config) without dropping a request."""
    started_s = time.perf_counter()
    project = load_project(path, environment=environment)
    for warning in project.warnings:
        click.echo(click.style("warning: ", fg="yellow") + warning, err=True)
    if project.secrets:
        click.echo(
            f"note: {', '.join(sorted(project.secrets))} from files for development are not "
            "deployed.",
            err=True,
        )
    upload = upload_of(project, build_bundle(project), name=name)
    with connect(url, token, token_file) as client:
        deployed = client.deploy(upload)
    duration_ms = (time.perf_counter() - started_s) * 1000
    click.echo(
        f"Deployed {upload.worker} version {deployed['number']} ({deployed['version_id']}) "
        f"in {duration_ms:.0f} ms\n  {deployed['url']}"
    )
