"""How running a worker can fail: each class has a stable code, and says whose fault it is."""

from collections.abc import Set
from typing import ClassVar, Literal

from belem.sdk.errors import BelemError, SystemFault, UserError

__all__ = [
    "CpuLimitExceeded",
    "GuestHung",
    "GuestInvalid",
    "GuestThrew",
    "IsolateBusy",
    "IsolateLost",
    "LoadError",
    "MemoryLimitExceeded",
    "again",
    "cause_of_end",
    "ending",
]


class LoadError(UserError):
    """The worker's top level threw, did not parse, or ran over a start-up limit."""

    code: ClassVar[str] = "isolate/load-failed"

    def __init__(
        self,
        name: str,
        message: str,
        stack: str = "",
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(f"{name}: {message}" if name else message)
        self.name = name
        self.text = message
        self.stack = stack
        self.file = file
        self.line = line
        self.column = column


class GuestThrew(UserError):
    """A handler threw, or its promise was rejected."""

    code: ClassVar[str] = "isolate/threw"
    status: ClassVar[int] = 500

    def __init__(
        self, name: str, message: str, stack: str = "", *, pass_through: bool = False
    ) -> None:
        super().__init__(f"{name}: {message}" if name else message)
        self.name = name
        self.text = message
        self.stack = stack
        self.pass_through = pass_through


class GuestHung(UserError):
    """Nothing is left that could ever make this request go on."""

    code: ClassVar[str] = "isolate/hung"
    status: ClassVar[int] = 500

    def __init__(self) -> None:
        super().__init__(
            "The Workers runtime canceled this request because it detected that your Worker's code "
            "had hung and would never generate a response."
        )


class CpuLimitExceeded(UserError):
    """The worker used more CPU time than one invocation may."""

    code: ClassVar[str] = "isolate/cpu-limit"
    status: ClassVar[int] = 503

    def __init__(self, used_ms: float, limit_ms: int) -> None:
        super().__init__(f"Worker used {used_ms:.0f} ms of CPU time; the limit is {limit_ms} ms.")
        self.used_ms = used_ms
        self.limit_ms = limit_ms


class MemoryLimitExceeded(UserError):
    """The worker needed more memory than its isolate may have."""

    code: ClassVar[str] = "isolate/memory-limit"
    status: ClassVar[int] = 503

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"Worker exceeded its memory limit of {limit_bytes >> 20} MiB.")
        self.limit_bytes = limit_bytes


class IsolateLost(SystemFault):
    """The isolate ended under this request: it broke the protocol, trapped, or was closed."""

    code: ClassVar[str] = "isolate/lost"

    def __init__(self, reason: str, detail: str = "", *, delivered: bool = True) -> None:
        super().__init__(f"The isolate was lost ({reason}){': ' + detail if detail else '.'}")
        self.reason = reason
        self.detail = detail
        # Whether the guest may have seen the request; if not, another isolate can take it.
        self.delivered = delivered


class IsolateBusy(SystemFault):
    """The isolate, or the host, already has as much in flight as its limits allow."""

    code: ClassVar[str] = "isolate/busy"


class GuestInvalid(BelemError):
    """The guest's engine module does not keep to the ABI (docs/rfd/0002): a build fault."""

    code: ClassVar[str] = "isolate/guest-invalid"
    side: ClassVar[Literal["user", "system"]] = "system"


def ending(error: BelemError | None) -> str:
    """Name the end of an isolate in a word or two, out of few: `closed`, `trap`, `cpu-limit`."""
    if isinstance(error, IsolateLost):
        return error.reason
    return "unknown" if error is None else error.code.rpartition("/")[2]


def cause_of_end(error: BelemError, blamed: Set[int], request: int) -> BelemError:
    """Return what a request fails with when its isolate ends with an error.

    A limit is the fault of those who went over it: the others lose their isolate through them.
    """
    if isinstance(error, IsolateLost) or request in blamed:
        return again(error)
    return IsolateLost(ending(error), "another request of the isolate went over the limit")


def again(error: BelemError) -> BelemError:
    """Return an equal error: the tracebacks of several requests must not grow into each other."""
    copy = type(error).__new__(type(error), *error.args)
    copy.args = error.args
    copy.__dict__.update(error.__dict__)
    return copy
