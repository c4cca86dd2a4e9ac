"""Talk to a host's control API: deploy, list, delete, tail."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, ClassVar, Final, Self
from urllib.parse import quote

import httpx

from belem.runtime.control.tails import HEARTBEAT_SECONDS
from belem.runtime.control.versions import Binding, Upload
from belem.sdk import Json, SystemFault, UserError

__all__ = ["ControlClient", "HostRefused", "HostUnreachable"]

_SCRIPTS: Final = "/client/v4/accounts/local/workers/scripts"
_TIMEOUT_SECONDS: Final = 120.0


class HostUnreachable(SystemFault):
    """Nothing that speaks the control API answers at the address."""

    code: ClassVar[str] = "control/host-unreachable"


class HostRefused(UserError):
    """The host answered with errors."""

    code: ClassVar[str] = "control/host-refused"

    def __init__(self, message: str, *, number: int, http_status: int) -> None:
        super().__init__(message)
        self.number = number
        self.http_status = http_status


class ControlClient:
    """One host's control API. Results are the `result` of its envelope."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        # trust_env off: a proxy variable must not carry the token of a host on this machine
        # elsewhere.
        self._http = httpx.Client(
            base_url=self._url,
            headers={"authorization": f"Bearer {token}"},
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
        )

    # Any in the results: JSON of the host, shown and not relied on.
    def deploy(self, upload: Upload) -> Mapping[str, Any]:
        """Upload a version and make it live; return its facts."""
        files: list[tuple[str, tuple[str | None, str, str]]] = [
            ("metadata", (None, json.dumps(_metadata(upload)), "application/json"))
        ]
        for name, source in upload.modules.items():
            files.append((name, (name, source, "application/javascript+module")))
        result: Mapping[str, Any] = self._call("PUT", f"{_SCRIPTS}/{_quoted(upload.worker)}", files)
        return result

    def list(self) -> Sequence[Mapping[str, Any]]:
        """Return the host's workers."""
        result: Sequence[Mapping[str, Any]] = self._call("GET", _SCRIPTS)
        return result

    def delete(self, worker: str) -> None:
        """Delete a worker and its versions."""
        self._call("DELETE", f"{_SCRIPTS}/{_quoted(worker)}")

    @contextmanager
    def tail(
        self, worker: str, query: Mapping[str, Sequence[str]]
    ) -> Generator[Iterator[Mapping[str, Any]], None, None]:
        """Open a stream of the worker's invocations; it ends when the host closes it.

        Raises `HostUnreachable` while it is read, too: the host may go at any time.
        """
        path = f"{_SCRIPTS}/{_quoted(worker)}/tail"
        timeout = httpx.Timeout(_TIMEOUT_SECONDS, read=3 * HEARTBEAT_SECONDS)
        try:
            with self._http.stream("GET", path, params={**query}, timeout=timeout) as response:
                if response.status_code != 200:
                    response.read()
                    self._result(response)
                yield self._messages(response)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(
        self,
        method: str,
        path: str,
        files: Sequence[tuple[str, tuple[str | None, str, str]]] | None = None,
    ) -> Any:
        try:
            response = self._http.request(method, path, files=files)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from error
        return self._result(response)

    def _messages(self, response: httpx.Response) -> Iterator[Mapping[str, Any]]:
        try:
            for line in response.iter_lines():
                if line:
                    yield json.loads(line)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        except ValueError as error:
            raise self._no_api(response) from error

    def _result(self, response: httpx.Response) -> Any:  # Any: JSON of the host
        try:
            envelope = response.json()
            errors = envelope["errors"]
            if envelope["success"]:
                return envelope["result"]
            first = errors[0]
            text = "\n".join(f"{entry['message']} [code {entry['code']}]" for entry in errors)
            raise HostRefused(text, number=first["code"], http_status=response.status_code)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise self._no_api(response) from error

    def _unreachable(self, error: Exception) -> HostUnreachable:
        return HostUnreachable(
            f"No host answers at {self._url} ({error}). Start one with: belem serve --data DIR"
        )

    def _no_api(self, response: httpx.Response) -> HostUnreachable:
        return HostUnreachable(
            f"What answers at {self._url} is not a Belem control API (status "
            f"{response.status_code})."
        )


def _metadata(upload: Upload) -> Mapping[str, object]:
    bindings: list[Mapping[str, object]] = [_binding(binding) for binding in upload.bindings]
    for name, value in upload.vars.items():
        bindings.append(_variable(name, value))
    return {
        "main_module": upload.main_module,
        "bindings": bindings,
        "compatibility_date": upload.compatibility_date,
        "compatibility_flags": list(upload.compatibility_flags),
        "limits": {"cpu_ms": upload.cpu_ms, "subrequests": upload.subrequests},
        "belem": {"isolation": upload.isolation},
    }


def _binding(binding: Binding) -> Mapping[str, object]:
    fields: dict[str, object] = {"name": binding.name, "type": binding.type}
    if binding.namespace_id is not None:
        fields["namespace_id"] = binding.namespace_id
    return fields


def _variable(name: str, value: Json) -> Mapping[str, object]:
    if isinstance(value, str):
        return {"name": name, "type": "plain_text", "text": value}
    return {"name": name, "type": "json", "json": value}


def _quoted(name: str) -> str:
    return quote(name, safe="")
