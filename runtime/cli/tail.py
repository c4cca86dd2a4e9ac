"""`belem tail`: watch a worker's invocations as they end."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import click

from belem.runtime.cli.hosts import connect, host_options
from belem.runtime.control.client import ControlClient, HostUnreachable

__all__ = ["tail"]

Format = Literal["pretty", "json"]
Query = Mapping[str, Sequence[str]]
Message = Mapping[str, Any]  # Any: JSON of the host, shown and not relied on

_FIRST_WAIT_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 5.0
_OUTCOMES: Final = {
    "ok": "Ok",
    "canceled": "Canceled",
    "exception": "Exception Thrown",
    "exceededCpu": "Exceeded CPU Limit",
    "exceededMemory": "Exceeded Memory Limit",
    "responseStreamDisconnected": "Response Stream Disconnected",
    "refused": "Refused",
}
_LEVEL_COLOURS: Final = {"error": "red", "warn": "yellow", "debug": "bright_black"}
# What a worker prints must not move the cursor of who watches it.
_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}


@click.command()
@click.argument("worker", metavar="NAME")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["pretty", "json"]),
    help="Shape of the output; json is one line for each invocation, as Wrangler has them. "
    "[default: pretty on a terminal, json elsewhere]",
)
@click.option(
    "--status",
    type=click.Choice(["ok", "error", "canceled"]),
    multiple=True,
    help="Only invocations that ended so. May be repeated.",
)
@click.option("--method", multiple=True, help="Only requests of this method. May be repeated.")
@click.option("--header", help="Only requests with this header: NAME or NAME:PART.")
@click.option("--search", help="Only invocations that logged this text.")
@click.option("--version-id", "version", help="Only invocations of this version.")
@click.option(
    "--sampling-rate",
    type=click.FloatRange(0, 1, min_open=True),
    help="The share of invocations to show, from 0 to 1.",
)
@host_options
def tail(
    *,
    worker: str,
    shape: Format | None,
    status: tuple[str, ...],
    method: tuple[str, ...],
    header: str | None,
    search: str | None,
    version: str | None,
    sampling_rate: float | None,
    url: str,
    token: str | None,
    token_file: Path | None,
) -> None:
    """Watch the invocations of a worker on a host, with console lines and exceptions."""
    single = {"header": header, "search": search, "version": version}
    query: dict[str, Sequence[str]] = {"status": status, "method": method}
    query |= {name: (value,) for name, value in single.items() if value is not None}
    if sampling_rate is not None:
        query["sampling_rate"] = (str(sampling_rate),)
    show = _show_json if (shape or _usual_format()) == "json" else _show_pretty
    try:
        with connect(url, token, token_file) as client:
            _follow(client, worker, query, show)
    except KeyboardInterrupt:
        return  # how a tail is meant to end


def _usual_format() -> Format:
    return "pretty" if sys.stdout.isatty() else "json"


def _follow(
    client: ControlClient, worker: str, query: Query, show: Callable[[Message], None]
) -> None:
    """Show what comes for ever; a host that went away is asked again until it is back."""
    connected = False
    wait_seconds = _FIRST_WAIT_SECONDS
    while True:
        try:
            with client.tail(worker, query) as messages:
                again = " again" if connected else ""
                _note(f"Connected to {worker}{again}; waiting for requests. Ctrl-C ends it.")
                connected, wait_seconds = True, _FIRST_WAIT_SECONDS
                for message in messages:
                    show(message)
            _note("The host closed the tail. Connecting again …")
        except HostUnreachable as error:
            if not connected:
                raise
            if wait_seconds == _FIRST_WAIT_SECONDS:
                _note(f"{error.message} Trying again …")
        time.sleep(wait_seconds)
        wait_seconds = min(wait_seconds * 2, _LONGEST_WAIT_SECONDS)


def _note(text: str) -> None:
    click.secho(text, err=True, dim=True)


def _show_json(message: Message) -> None:
    if "outcome" in message:
        click.echo(json.dumps(message, separators=(",", ":")))
    else:
        _show_dropped(message)


def _show_pretty(message: Message) -> None:
    if "outcome" not in message:
        _show_dropped(message)
        return
    for line in _lines(message):
        click.echo(line)


def _show_dropped(message: Message) -> None:
    count = message.get("dropped")
    if count:
        text = f"{count} invocations are not shown: they came faster than they could be sent."
        click.secho(text, err=True, fg="yellow")


def _lines(message: Message) -> Iterator[str]:
    """Return what is printed of one invocation: the request, its lines, its exceptions."""
    request = message["event"]["request"]
    response = message["event"]["response"]
    outcome = str(message["outcome"])
    clock = datetime.fromtimestamp(message["eventTimestamp"] / 1000).strftime("%H:%M:%S")
    status = "no response" if response is None else f"{response['status']}"
    times = f"{message['wallTime']:.0f} ms, CPU {message['cpuTime']:.1f} ms"
    shown = click.style(_OUTCOMES.get(outcome, "Unknown"), fg="green" if outcome == "ok" else "red")
    head = f"{_printable(request['method'])} {_printable(request['url'])}"
    yield f"{head} - {shown} @ {clock} ({status}, {times})"
    for log in message["logs"]:
        level = _printable(str(log["level"]))
        text = _indented(" ".join(map(str, log["message"])))
        yield click.style(f"  ({level}) {text}", fg=_LEVEL_COLOURS.get(level))
    for thrown in message["exceptions"]:
        text = f"  {_printable(thrown['name'])}: {_indented(thrown['message'])}"
        yield click.style(text, fg="red", bold=True)
        frames = [line for line in str(thrown["stack"]).splitlines() if line.startswith("    at ")]
        for frame in frames:
            yield click.style(f"  {_printable(frame)}", dim=True)


def _indented(text: str) -> str:
    return _printable(text).replace("\n", "\n    ")


def _printable(text: str) -> str:
    """Return the text with its control characters visible, but for tab and newline."""
    whole = text.encode("utf-8", "replace").decode()  # half a character cannot be printed
    return whole.translate(_CONTROL)
