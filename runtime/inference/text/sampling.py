"""From logits to the next token. Pure: the same numbers and the same generator, the same token."""

import secrets
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from belem.runtime.inference.text.backend import Logits

__all__ = ["Sampler", "Sampling"]

# So cold that only the likeliest token is ever drawn; dividing by less would overflow.
_GREEDY_BELOW: Final = 1e-5


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose. Temperature 0 is greedy; top_k 0, and top_p 0 or 1 and more, leave all in."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 0.0
    seed: int | None = None


class Sampler:
    """One generation's choices. Its randomness is its own, so neighbours do not change it."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        seed = secrets.randbits(64) if sampling.seed is None else sampling.seed
        self._random = np.random.Generator(np.random.PCG64(seed))

    def choose(self, logits: Logits) -> int:
        """Return the next token."""
        options = self._sampling
        if options.temperature < _GREEDY_BELOW:
            return int(logits.argmax())
        # In order of likelihood, so that rounding far down the list cannot move the choice.
        order = _most_likely(logits, options.top_k or len(logits))
        likely = logits[order].astype(np.float64)
        shares = np.exp((likely - likely[0]) / options.temperature)
        shares /= shares.sum()
        totals: NDArray[np.float64] = np.cumsum(shares)
        if 0 < options.top_p < 1:
            totals = totals[: int(np.searchsorted(totals, options.top_p)) + 1]
        point = self._random.random() * float(totals[-1])
        chosen = min(int(np.searchsorted(totals, point, "right")), len(totals) - 1)
        return int(order[chosen])


def _most_likely(logits: Logits, count: int) -> NDArray[np.intp]:
    """Return the indices of the largest logits, largest first; among equals the first first."""
    if count < len(logits):
        smallest = np.sort(logits)[len(logits) - count]
        candidates = np.flatnonzero(logits >= smallest)
    else:
        candidates = np.arange(len(logits))
    order = np.argsort(-logits[candidates], kind="stable")
    return candidates[order][:count]
