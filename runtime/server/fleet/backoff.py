"""How long to wait before a dead process is started again."""

from dataclasses import dataclass, replace

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """A pure policy: each early death doubles the wait; a long life makes up for all of them."""

    deaths: int = 0
    first_seconds: float = 0.1
    last_seconds: float = 30.0
    stable_seconds: float = 60.0

    @property
    def wait_seconds(self) -> float:
        """How long to wait now."""
        doublings = min(max(0, self.deaths - 1), 32)
        return min(self.first_seconds * 2.0**doublings, self.last_seconds)

    def after(self, lived_seconds: float) -> "Backoff":
        """Return the policy after a life of this length."""
        return replace(self, deaths=1 if lived_seconds >= self.stable_seconds else self.deaths + 1)
