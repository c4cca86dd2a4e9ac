"""Build the guests that the wheel ships: `python -m belem.isolates.guests.build`."""

import sys
from pathlib import Path

from belem.isolates.guests.building import BuildFailed, Outputs, Sources, Steps, steps_for_terminal
from belem.isolates.guests.building.outputs import install
from belem.isolates.guests.js import build as js
from belem.sdk.folders import user_cache_directory

__all__ = ["build_guests"]


def build_guests(steps: Steps) -> None:
    """Have every guest's wasm beside its sources."""
    cache = user_cache_directory()
    built = js.build(Outputs(cache / "guests"), Sources(cache / "sources"), steps)
    target = Path(js.__file__).parent / js.WASM_NAME
    if install(built, target):
        steps.note(f"The JavaScript guest is ready: {target.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    try:
        build_guests(steps_for_terminal())
    except BuildFailed as failure:
        sys.exit(failure.message)
    except OSError as error:  # a full disk, a cache folder that is not ours
        sys.exit(f"The guests could not be built: {error}. Mend that, then build again.")
