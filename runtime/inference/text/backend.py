"""The seam between the scheduler and what computes: anything that fills slots and steps them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Logits", "Row", "TextBackend"]

Logits: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Row:
    """One token to feed at one position of one slot."""

    slot: int
    position: int
    token: int


class TextBackend(Protocol):
    """A model with a cache of `slots` sequences. Only the device's thread calls it.

    The cache holds what was fed: a position may be fed again, and what lies behind it is then
    forgotten. A row's result does not depend on the other rows of the call.
    """

    @property
    def slots(self) -> int:
        """The number of sequences that the cache holds."""
        ...

    @property
    def context_tokens(self) -> int:
        """The number of tokens that a sequence may have."""
        ...

    @property
    def bytes(self) -> int:
        """The memory of weights and cache."""
        ...

    def prefill(self, slot: int, start: int, tokens: Sequence[int]) -> Logits:
        """Feed tokens from position `start` on; return the logits [vocabulary] after the last."""
        ...

    def decode(self, rows: Sequence[Row]) -> Logits:
        """Feed one token to each of some slots; return logits [rows, vocabulary]."""
        ...

    def warm_ups(self, *, long: bool) -> Sequence[Callable[[], object]]:
        """Return jobs that compile what requests need: of the usual lengths, or of the long ones.

        A request that comes before its job has run waits for the compiler.
        """
        ...
