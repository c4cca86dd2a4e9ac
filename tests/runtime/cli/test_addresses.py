import click
import pytest
from click.testing import CliRunner

from belem.runtime.cli.addresses import inference_address


@click.command()
@click.option("--inference", callback=inference_address)
def echo(inference: str) -> None:
    click.echo(inference)


@pytest.mark.parametrize(
    "text",
    ["auto", "unix:/run/belem.sock", "127.0.0.1:50051", "gpu-box:1", "[::1]:5", "dns:///a:1"],
)
def test_an_address_of_a_daemon_is_taken_as_it_is(text: str) -> None:
    assert CliRunner().invoke(echo, ["--inference", text]).output == f"{text}\n"


@pytest.mark.parametrize("text", ["", "bogus", "host:", ":1", "h:99999", "http://h:1", "unix:"])
def test_what_is_no_address_is_refused_before_anything_starts(text: str) -> None:
    ran = CliRunner().invoke(echo, ["--inference", text])

    assert ran.exit_code == 2
    assert f"'{text}' is no address; give unix:PATH, HOST:PORT or auto." in ran.output
