"""Addresses and sockets."""

import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import pytest

from belem.runtime.inference.errors import AddressInUse, BadRequest
from belem.runtime.inference.listening import Address, bind, parse_address


@pytest.fixture
async def server() -> AsyncIterator[grpc.aio.Server]:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    yield server
    await server.stop(None)


@pytest.mark.parametrize("text", ["unix:/tmp/x/a.sock", "unix:///tmp/x/a.sock"])
def test_a_sockets_path_is_read(text: str) -> None:
    assert parse_address(text) == Address("unix:/tmp/x/a.sock", path=Path("/tmp/x/a.sock"))


def test_a_relative_path_becomes_absolute() -> None:
    assert parse_address("unix:a.sock").path == Path.cwd() / "a.sock"


@pytest.mark.parametrize(
    ("text", "host", "private"),
    [
        ("127.0.0.1:50051", "127.0.0.1", True),
        ("localhost:1", "localhost", True),
        ("[::1]:65535", "::1", True),
        ("0.0.0.0:80", "0.0.0.0", False),
        ("[::]:80", "::", False),
        ("gpu-box.example:80", "gpu-box.example", False),
    ],
)
def test_hosts_and_ports_are_read(text: str, host: str, private: bool) -> None:
    address = parse_address(text)

    assert (address.target, address.host, address.is_private) == (text, host, private)


@pytest.mark.parametrize(
    "text", ["", "localhost", "localhost:", "a:70000", "::1:80", "a b:80", "/x"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="it must be unix:PATH or HOST:PORT"):
        parse_address(text)


def test_a_path_over_the_systems_limit_is_refused() -> None:
    with pytest.raises(BadRequest, match="203 bytes; the limit is 107"):
        parse_address("unix:/" + "x" * 202)


async def test_the_socket_is_its_users_alone(server: grpc.aio.Server, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        bind(server, parse_address(f"unix:{tmp_path}/a.sock"))
    finally:
        os.umask(before)

    mode = (tmp_path / "a.sock").stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert mode & 0o777 == 0o600


async def test_a_socket_that_a_killed_daemon_left_is_replaced(
    server: grpc.aio.Server, tmp_path: Path
) -> None:
    path = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    before = path.stat().st_ino

    bind(server, parse_address(f"unix:{path}"))
    await server.start()

    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(path))
    assert path.stat().st_ino != before or path.exists()


async def test_a_socket_that_is_listened_at_is_refused(
    server: grpc.aio.Server, tmp_path: Path
) -> None:
    path = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as live:
        live.bind(str(path))
        live.listen()

        with pytest.raises(AddressInUse, match="Another process listens"):
            bind(server, parse_address(f"unix:{path}"))
    assert path.exists()


async def test_a_file_that_is_no_socket_is_left_alone(
    server: grpc.aio.Server, tmp_path: Path
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")

    with pytest.raises(AddressInUse, match="is no socket; it is left alone"):
        bind(server, parse_address(f"unix:{path}"))
    assert path.read_text() == "mine"


async def test_port_zero_becomes_the_port_that_was_given(server: grpc.aio.Server) -> None:
    address = bind(server, parse_address("127.0.0.1:0"))

    assert not address.target.endswith(":0")
    assert address.is_private


async def test_a_port_that_is_taken_is_refused(server: grpc.aio.Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(AddressInUse):
            bind(server, parse_address(f"127.0.0.1:{port}"))
