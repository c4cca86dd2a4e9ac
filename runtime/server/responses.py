"""From the head of a guest's reply to an ASGI response; one that would break HTTP is refused."""

import http
import re
from functools import lru_cache
from typing import Final, NamedTuple

from belem.runtime.server.errors import BadReply

__all__ = ["NULL_BODY_STATUSES", "ReplyHead", "WireHead", "read_reply_head", "read_wire_head"]

NULL_BODY_STATUSES: Final = frozenset({204, 205, 304})
_HEAD_LIMIT_CHARACTERS: Final = 128 * 1024
_REMEMBERED_CHARACTERS: Final = 1024
_REMEMBERED_HEADS: Final = 512
_STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %s\r\n" % (status.value, status.phrase.encode())
    for status in http.HTTPStatus
}

# One expression for the whole head: it runs at C speed, and nothing but what it names gets past it.
# Field names are RFC 9110 tokens; values have no control characters but tab, and fit in Latin-1.
_HEAD: Final = re.compile(
    r"[2-5][0-9][0-9](?: [\t\x20-\x7e\x80-\xff]*)?"
    r"(?:\n[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)*\n?"
)
# Framing belongs to the server: it knows how the body will really be sent. It also writes the date.
_DROPPED: Final = frozenset(
    {
        "connection", "date", "keep-alive", "proxy-authenticate", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip


class ReplyHead(NamedTuple):
    """A checked status and headers. `content_length` is what the guest claims, or None."""

    status: int
    headers: list[tuple[bytes, bytes]]
    content_length: int | None


def read_reply_head(head: str) -> ReplyHead:
    """Parse "STATUS REASON\\nname:value\\n…"; raise `BadReply` unless it can be sent."""
    if len(head) > _HEAD_LIMIT_CHARACTERS:
        raise BadReply(
            f"The response's headers are {len(head)} characters; the limit is "
            f"{_HEAD_LIMIT_CHARACTERS}."
        )
    if _HEAD.fullmatch(head) is None:
        raise BadReply("The response has a status or a header that HTTP does not allow.")
    lines = head.split("\n")
    headers: list[tuple[bytes, bytes]] = []
    content_length: int | None = None
    for line in lines[1:]:
        if not line:
            continue
        name, _, value = line.partition(":")
        name = name.lower()
        if name == "content-length":
            content_length = _length(value.strip())
        elif name not in _DROPPED:
            headers.append((name.encode("latin-1"), value.strip().encode("latin-1")))
    return ReplyHead(int(lines[0][:3]), headers, content_length)


class WireHead(NamedTuple):
    """A checked head as it is sent. `has_body` is false where HTTP allows none."""

    status: int
    status_line: bytes
    lines: bytes
    has_body: bool


def read_wire_head(head: str) -> WireHead:
    """Do as `read_reply_head`, and remember short heads: workers repeat themselves."""
    return _remembered(head) if len(head) <= _REMEMBERED_CHARACTERS else _wire_head(head)


def _wire_head(head: str) -> WireHead:
    read = read_reply_head(head)
    return WireHead(
        read.status,
        _STATUS_LINES.get(read.status) or b"HTTP/1.1 %d \r\n" % read.status,
        b"".join(b"%s: %s\r\n" % header for header in read.headers),
        read.status not in NULL_BODY_STATUSES,
    )


_remembered = lru_cache(_REMEMBERED_HEADS)(_wire_head)


def _length(value: str) -> int | None:
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 15 else None
