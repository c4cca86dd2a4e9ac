"""Run the inference daemon: `python -m belem.runtime.inference`."""

import asyncio
import contextlib
import sys
from pathlib import Path

import click

from belem.runtime.inference.device import choose_device, prepare_environment
from belem.runtime.inference.errors import BadRequest
from belem.runtime.inference.listening import parse_address
from belem.runtime.inference.store import Catalogue
from belem.sdk.errors import BelemError
from belem.sdk.folders import user_cache_directory


@click.command(context_settings={"show_default": True})
@click.option("--listen", default="127.0.0.1:50051", help="unix:PATH or HOST:PORT.")
@click.option(
    "--catalogue",
    type=click.Path(path_type=Path),
    help="A catalogue of your own, over the shipped one.",
)
@click.option("--device", default="auto", help="cpu, gpu:N or auto.")
@click.option(
    "--device-memory-mb",
    type=click.IntRange(64),
    help="The most that is taken of a GPU's memory; it grows as needed where none is given.",
)
@click.option("--slots", default=4, type=click.IntRange(1, 64), help="Answers at a time.")
@click.option(
    "--context", default=2048, type=click.IntRange(16, 1 << 20), help="Tokens of one conversation."
)
@click.option("--queue", default=64, type=click.IntRange(1, 10_000), help="Requests that may wait.")
@click.option(
    "--load",
    default="at-start",
    type=click.Choice(["at-start", "lazily"]),
    help="When installed weights are loaded.",
)
@click.option("--drain-seconds", default=4.0, type=click.FloatRange(0, 3600), help="At the end.")
@click.option("--parent-pid", type=click.IntRange(1), help="End when this process does.")
def main(
    listen: str,
    catalogue: Path | None,
    device: str,
    device_memory_mb: int | None,
    slots: int,
    context: int,
    queue: int,
    load: str,
    drain_seconds: float,
    parent_pid: int | None,
) -> None:
    """Run the inference daemon behind env.AI."""
    try:
        address = parse_address(listen)
        names = Catalogue.load(catalogue)
        prepare_environment(user_cache_directory() / "compiled", device)
        chosen = choose_device(device, memory_limit_mb=device_memory_mb)
        # Only now: these import TensorFlow, which reads the environment once.
        from belem.runtime.inference.daemon import DaemonOptions, serve
        from belem.runtime.inference.text.text_model import TextLimits

        options = DaemonOptions(
            address=address,
            limits=TextLimits(slots=slots, context_tokens=context, max_waiting=queue),
            load_at_start=load == "at-start",
            parent_pid=parent_pid,
            drain_seconds=drain_seconds,
        )
        asyncio.run(serve(options, chosen, names, say=_say))
    except BadRequest as error:
        raise click.UsageError(error.message) from error
    except BelemError as error:
        raise click.ClickException(error.message) from error


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more; answers go on
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(prog_name="belem inference serve")
