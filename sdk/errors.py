"""The error tree: every error Belem raises on purpose says who can mend it, and how it is known."""

from typing import ClassVar, Literal

__all__ = ["BelemError", "SystemFault", "UserError"]


class BelemError(Exception):
    """Base of every error Belem raises on purpose.

    `code` is stable (`kv/key-too-long`), `status` is the HTTP status it answers with, and `side`
    says who can mend it: the user (a wrong key, config or input) or the system (a dead daemon).
    """

    code: ClassVar[str] = "belem/internal"
    status: ClassVar[int] = 500
    side: ClassVar[Literal["user", "system"]] = "system"

    @property
    def message(self) -> str:
        """Return the text for a person: what was wrong, the value, the limit."""
        return str(self)


class UserError(BelemError):
    """An error that the caller can mend: bad input, bad config, a name that does not exist."""

    code: ClassVar[str] = "belem/bad-request"
    status: ClassVar[int] = 400
    side: ClassVar[Literal["user", "system"]] = "user"


class SystemFault(BelemError):
    """An error of the machinery: the caller did nothing wrong and may try again."""

    code: ClassVar[str] = "belem/unavailable"
    status: ClassVar[int] = 503
