"""The JavaScript guest: QuickJS-NG, and boot scripts with Workers' web APIs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from belem.isolates.guest import Guest, Script

__all__ = ["javascript"]

_FOLDER: Final = Path(__file__).resolve().parent
_BOOT: Final = _FOLDER / "boot"
_STACK_BYTES: Final = 0  # as much of the C stack as the engine's own checks allow
_GC_THRESHOLD_BYTES: Final = 8 << 20  # well above what the boot code takes


def javascript(extensions: Sequence[Script] = ()) -> Guest:
    """Return the JavaScript guest; extensions run just before its boot is sealed."""
    names = (_BOOT / "order.txt").read_text().split()
    boot = [Script(f"belem:{name}", (_BOOT / name).read_text()) for name in names]
    seal = [script for script in boot if script.name == "belem:seal.js"]
    opened = [script for script in boot if script.name != "belem:seal.js"]
    modules = [
        Script(path.stem.replace("-", ":", 1), path.read_text())
        for path in sorted((_BOOT / "modules").glob("*.js"))
    ]
    return Guest(
        name="javascript",
        wasm=_FOLDER / "js.wasm",
        scripts=(*opened, *extensions, *seal),
        modules=tuple(modules),
        stack_bytes=_STACK_BYTES,
        gc_threshold_bytes=_GC_THRESHOLD_BYTES,
    )
