"""What one request used, so far: written by the isolate, read by limits and by who watches."""

from dataclasses import dataclass, field
from typing import Final

__all__ = ["OTHER_OPS", "Usage"]

OTHER_OPS: Final = "(other)"
_MOST_KINDS: Final = 64
_LONGEST_KIND: Final = 64


@dataclass(slots=True)
class Usage:
    """`memory_bytes` is the size of the isolate's memory, filled in when the isolate ends.

    While it lives it can be asked (`Reply.memory_bytes`), which costs too much to do for everyone.
    """

    cpu_seconds: float = 0.0
    subrequests: int = 0
    memory_bytes: int = 0
    ops: dict[str, int] = field(default_factory=dict[str, int])

    def count_op(self, capability: str, method: str) -> None:
        """Count an op by its kind, whatever the binding is called: `kv:NOTES` counts as `kv.get`.

        A guest chooses the names, so only some are kept apart.
        """
        kind = f"{capability.partition(':')[0]}.{method}"
        ops = self.ops
        if kind not in ops and (len(ops) >= _MOST_KINDS or len(kind) > _LONGEST_KIND):
            kind = OTHER_OPS
        ops[kind] = ops.get(kind, 0) + 1
