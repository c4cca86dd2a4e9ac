"""What of a request is not shown to those who watch workers: Workers' own rules."""

import re
from typing import Final

__all__ = ["REDACTED", "redact_header", "redact_url"]

REDACTED: Final = "REDACTED"

_COOKIES: Final = frozenset({"cookie", "set-cookie"})
_SECRET_NAME: Final = re.compile(r"auth|key|secret|token|jwt", re.IGNORECASE)
_ID: Final = re.compile(r"[A-Za-z0-9+_-]{21,}")
_HEX_ID: Final = re.compile(r"[0-9A-Fa-f+_-]*")
_SEPARATORS: Final = str.maketrans("", "", "+-_")
_LEAST_HEX_DIGITS: Final = 32
_LEAST_OF_EACH: Final = 2


def redact_header(name: str, value: str) -> str:
    """Return the value, or `REDACTED` for a header that may carry a credential."""
    if name.lower() in _COOKIES or _SECRET_NAME.search(name) is not None:
        return REDACTED
    return value


def redact_url(url: str) -> str:
    """Return the URL with everything in it that looks like a hexadecimal or base-64 id hidden."""
    return _ID.sub(lambda found: REDACTED if _is_id(found[0]) else found[0], url)


def _is_id(text: str) -> bool:
    if _HEX_ID.fullmatch(text) is not None:
        digits = text.translate(_SEPARATORS)
        if len(digits) >= _LEAST_HEX_DIGITS:
            return True
    counts = (
        sum(character.isupper() for character in text),
        sum(character.islower() for character in text),
        sum(character.isdigit() for character in text),
    )
    return min(counts) >= _LEAST_OF_EACH
