"""Changes to upstream sources that fail when upstream is not as we know it."""

from collections.abc import Sequence
from dataclasses import dataclass

from belem.isolates.guests.building.errors import BuildFailed

__all__ = ["Replacement", "apply"]


@dataclass(frozen=True, slots=True)
class Replacement:
    """Put `new` in the place of `old`, which must be there so many times, mostly once."""

    why: str
    old: str
    new: str
    places: int = 1


def apply(source: str, file_name: str, replacements: Sequence[Replacement]) -> str:
    """Return the source with every replacement made."""
    for replacement in replacements:
        found = source.count(replacement.old)
        if found != replacement.places:
            raise BuildFailed(
                f'The patch "{replacement.why}" fits {found} places in {file_name} instead of '
                f"{replacement.places}. "
                "Upstream has changed: read the new source and write the patch anew."
            )
        source = source.replace(replacement.old, replacement.new)
    return source
