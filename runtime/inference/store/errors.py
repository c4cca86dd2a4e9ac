"""What can be wrong with a catalogue, a model name or a pull."""

from typing import ClassVar

from belem.sdk.errors import SystemFault, UserError

__all__ = ["CatalogueError", "PullError", "UnknownModel", "UnsafePackage"]


class CatalogueError(UserError):
    """A catalogue file cannot be read, or an entry in it is wrong."""

    code: ClassVar[str] = "models/bad-catalogue"


class UnknownModel(UserError):
    """No catalogue entry has this name. `internal_code` is Workers AI's."""

    code: ClassVar[str] = "models/unknown"
    internal_code: ClassVar[int] = 5007

    def __init__(self, name: str) -> None:
        super().__init__(f"No such model {name} or task")
        self.name = name


class PullError(SystemFault):
    """Weights could not be brought into the store; nothing was left behind."""

    code: ClassVar[str] = "models/pull-failed"


class UnsafePackage(PullError):
    """A package or a file in it is not the one that the catalogue pins."""

    code: ClassVar[str] = "models/hash-mismatch"
