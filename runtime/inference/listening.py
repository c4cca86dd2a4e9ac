"""Where the daemon listens: a Unix socket that only its user reaches, or a TCP address."""

import ipaddress
import os
import re
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc.aio

from belem.runtime.inference.errors import AddressInUse, BadRequest

__all__ = ["Address", "bind", "parse_address"]

_MAX_SOCKET_PATH_BYTES: Final = 107  # of sockaddr_un
_PROBE_TIMEOUT_SECONDS: Final = 1.0
_TCP: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]/\s]+):(\d{1,5})", re.ASCII)
_MAX_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class Address:
    """A gRPC target: a socket's path, or a host with a port."""

    target: str
    path: Path | None = None
    host: str = ""

    @property
    def is_private(self) -> bool:
        """Whether nobody on another machine can reach it. Calls are not authenticated."""
        if self.path is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """Read `unix:PATH` or `HOST:PORT`."""
    if text.startswith("unix:"):
        path = Path(text.removeprefix("unix:").removeprefix("//")).absolute()
        length = len(os.fsencode(path))
        if length > _MAX_SOCKET_PATH_BYTES:
            raise BadRequest(
                f"The socket's path has {length} bytes; the limit is {_MAX_SOCKET_PATH_BYTES}."
            )
        return Address(f"unix:{path}", path=path)
    match = _TCP.fullmatch(text)
    if match is None or int(match[2]) > _MAX_PORT:
        raise BadRequest(f"'{text}' is no address; it must be unix:PATH or HOST:PORT.")
    return Address(text, host=match[1].strip("[]"))


def bind(server: grpc.aio.Server, address: Address) -> Address:
    """Listen at the address; return it with the port that was given for port 0."""
    if address.path is not None:
        _clear(address.path)
        _bind_socket(server, address.path)
        return address
    try:
        port = server.add_insecure_port(address.target)
    except RuntimeError as error:
        raise _in_use(address.target) from error
    return Address(f"{address.target.rpartition(':')[0]}:{port}", host=address.host)


def _clear(path: Path) -> None:
    """Remove the socket that a killed daemon left; refuse to touch anything else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise AddressInUse(f"{path} exists and is no socket; it is left alone.")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_TIMEOUT_SECONDS)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError as error:  # a full backlog, say: somebody is there
            raise _in_use(str(path)) from error
        else:
            raise _in_use(str(path))


def _bind_socket(server: grpc.aio.Server, path: Path) -> None:
    # The mode must be right from the first moment: a chmod afterwards would leave a gap.
    before = os.umask(0o177)
    try:
        server.add_insecure_port(f"unix:{path}")
    except RuntimeError as error:
        raise AddressInUse(f"Cannot listen at {path}: {error}") from error
    finally:
        os.umask(before)


def _in_use(where: str) -> AddressInUse:
    return AddressInUse(f"Another process listens at {where}, or it cannot be listened at.")
