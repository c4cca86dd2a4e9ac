"""A generation as server-sent events, the way Workers AI streams it."""

import json
import secrets
import string
from collections.abc import Mapping
from typing import Final

from belem.bindings.ai.client import Generation
from belem.bindings.ai.errors import AIError
from belem.bindings.ai.v1 import inference_pb2 as pb
from belem.sdk.ops import Json

__all__ = ["EventStream", "usage"]

# `p` hides how long each token is from someone who watches encrypted traffic; clients ignore it.
_PADDING: Final = string.ascii_lowercase + string.digits


class EventStream:
    """Bytes of the event stream. Closing it, read or not, frees the daemon's slot."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._over = False

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> bytes:
        if self._over:
            raise StopAsyncIteration
        try:
            event = await anext(self._generation)
        except AIError as error:
            # The status line has gone out already. An event that says why, and then no [DONE]:
            # readers that know the protocol see a truncated answer, never a short one.
            self._over = True
            return _event({"error": {"code": error.internal_code, "message": error.long_message}})
        if isinstance(event, pb.Text):
            return _event({"response": event.text, "p": _padding()})
        self._over = True
        last = _event({"response": "", "usage": usage(event), "p": _padding()})
        return last + b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        """Stop generating. Safe to call twice."""
        self._over = True
        await self._generation.aclose()


def usage(finished: pb.Finished) -> dict[str, Json]:
    """Return the token counts of an answer."""
    counts: dict[str, Json] = {
        "prompt_tokens": finished.prompt_tokens,
        "completion_tokens": finished.completion_tokens,
        "total_tokens": finished.prompt_tokens + finished.completion_tokens,
    }
    if finished.cached_tokens:
        counts["prompt_tokens_details"] = {"cached_tokens": finished.cached_tokens}
    return counts


def _event(data: Mapping[str, Json]) -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode()


def _padding() -> str:
    return _PADDING[: 1 + secrets.randbelow(len(_PADDING))]
