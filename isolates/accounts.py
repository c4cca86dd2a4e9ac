"""Who pays for CPU time.

A step is for one request or for several, and the host measures the step. A short one is shared out
evenly among its records. A long one is looked at after each slice: a guest writes 0 over the kind
of every record that it has finished with (docs/rfd/0002), so a slice falls on the records that it
worked on, and a request that computes on and on is known while it does.

What a step did for no request that is live is charged to nobody's account, which a tenth of the
time that passes pays off: a guest cannot compute for ever in the name of requests that are over.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from belem.isolates.reply import Reply
from belem.sdk.abi import RECORD

__all__ = ["Accounts", "Meter", "Reading"]

NOBODY: Final = 0
_UNOWNED_SHARE: Final = 0.1
_FINISHED: Final = bytes(4)


class Reading(Protocol):
    """What a meter needs of an instance."""

    def read(self, address: int, length: int, /) -> bytes: ...


class Meter:
    """The CPU time of one long step, by request; used by whichever thread runs the step.

    `over` is the request that has used more than was left to it, once there is one.
    """

    __slots__ = ("_at", "_heads", "_instance", "_left", "_owners", "over", "shares")

    def __init__(
        self,
        instance: Reading,
        address: int,
        batch: bytes,
        owners: Sequence[int],
        left: Mapping[int, float],
    ) -> None:
        self.shares: dict[int, float] = {}
        self.over: int | None = None
        self._instance = instance
        self._heads = _heads(address, batch)
        self._owners = owners
        self._left = left
        self._at = 0  # the record that is being worked on

    @property
    def running(self) -> int:
        """Return the request whose record was being worked on when the last slice ended."""
        return self._owners[self._at]

    def add(self, cpu_seconds: float) -> bool:
        """Charge a slice; say whether a request is over its limit."""
        first = self._at
        last = len(self._owners) - 1
        while self._at < last and self._instance.read(self._heads[self._at], 4) == _FINISHED:
            self._at += 1
        share = cpu_seconds / (self._at - first + 1)
        for owner in self._owners[first : self._at + 1]:
            used = self.shares[owner] = self.shares.get(owner, 0.0) + share
            if used > self._left[owner]:
                self.over = owner
        return self.over is not None


class Accounts:
    """The CPU time of one isolate's requests, written to their `Usage`."""

    __slots__ = ("_limit_seconds", "_live", "_now", "_unowned_seconds", "_unowned_since")

    def __init__(
        self,
        live: Callable[[], Mapping[int, Reply]],
        limit_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._live = live
        self._limit_seconds = limit_seconds
        self._now = now
        self._unowned_seconds = 0.0
        self._unowned_since = now()

    def meter(self, instance: Reading, address: int, batch: bytes, owners: Sequence[int]) -> Meter:
        """Return the meter of a step that has outlived its first slice."""
        live = self._live()
        owners = [owner if owner in live else NOBODY for owner in owners]
        left = {
            owner: self._limit_seconds
            - (self._unowned() if owner == NOBODY else live[owner].usage.cpu_seconds)
            for owner in owners
        }
        return Meter(instance, address, batch, owners, left)

    def charge_evenly(self, owners: Sequence[int], cpu_seconds: float) -> frozenset[int]:
        """Charge a short step; return the requests that are over their limit, or nobody."""
        live, limit_seconds = self._live(), self._limit_seconds
        share = cpu_seconds / len(owners)
        over: frozenset[int] = _NONE
        for owner in owners:
            reply = live.get(owner)
            if reply is None:
                over |= self._charge_nobody(share)
            else:
                usage = reply.usage
                usage.cpu_seconds += share
                if usage.cpu_seconds > limit_seconds:
                    over |= {owner}
        return over

    def charge_metered(self, meter: Meter) -> frozenset[int]:
        """Charge a long step, as `charge_evenly`."""
        over: frozenset[int] = _NONE
        for owner, share in meter.shares.items():
            over |= self.charge_evenly((owner,), share)
        return over

    def _charge_nobody(self, cpu_seconds: float) -> frozenset[int]:
        self._unowned_seconds = self._unowned() + cpu_seconds
        return _ONLY_NOBODY if self._unowned_seconds > self._limit_seconds else _NONE

    def _unowned(self) -> float:
        now = self._now()
        paid_off = (now - self._unowned_since) * _UNOWNED_SHARE
        self._unowned_since = now
        self._unowned_seconds = max(0.0, self._unowned_seconds - paid_off)
        return self._unowned_seconds


_NONE: Final[frozenset[int]] = frozenset()
_ONLY_NOBODY: Final = frozenset((NOBODY,))


def _heads(address: int, batch: bytes) -> list[int]:
    """Return where in guest memory each record of a batch begins."""
    heads: list[int] = []
    offset = 0
    while offset < len(batch):
        heads.append(address + offset)
        length: int = RECORD.unpack_from(batch, offset)[3]
        offset += RECORD.size + ((length + 3) & ~3)
    return heads
