"""The recipe for `js.wasm`: QuickJS-NG, the URL parser ada, and our native half."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from belem.isolates.guests.building import (
    BuildFailed,
    Outputs,
    Sdist,
    Sources,
    Steps,
    Unit,
    Zig,
    apply,
)
from belem.isolates.guests.building.zig import ZIG_VERSION
from belem.isolates.guests.js.patches import PATCHES

__all__ = ["NATIVE", "SDISTS", "WASM_NAME", "build", "build_key"]

NATIVE: Final = Path(__file__).parent / "native"
WASM_NAME: Final = "js.wasm"

SDISTS: Final = (
    Sdist(
        "quickjs-ng", "0.17.0.2", "43d2e48272208721a7aaea8e3f02d4b9318f12ef20cc4f5421b59d9a470706ef"
    ),
    Sdist("ada-url", "4.0.0", "9f399ec867349800a4c2d3aa8df8c533c340494b04d34b1f082b97d9a8b76a07"),
)
_QUICKJS, _ADA = SDISTS

# JavaScript can use this less a margin: about 10,000 plain calls. It lies at address 0, so that
# running off its end traps.
_C_STACK_BYTES: Final = 4 << 20

FLAGS: Final = (
    "-O3",
    "-DNDEBUG",
    "-D_GNU_SOURCE",
    "-fno-sanitize=undefined",
    f"-DBELEM_C_STACK_BYTES={_C_STACK_BYTES}",
    "-Inative",
    "-Ipatched",
    "-Iquickjs",
    "-Iada",
)
_OURS: Final = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-sign-compare")
_THEIRS: Final = ("-w",)
UNITS: Final = (
    # Ours first: they define what the libc would otherwise be asked for.
    Unit("native/allocator.c", (*_OURS, "-fno-builtin")),
    Unit("native/guest.c", _OURS),
    Unit("native/freestanding.c", _OURS),
    Unit("patched/libregexp.c", _THEIRS),
    Unit("quickjs/libunicode.c", _THEIRS),
    Unit("quickjs/dtoa.c", _THEIRS),
    Unit(
        "ada/ada.cpp",
        (*_THEIRS, "-std=c++20", "-fno-exceptions", "-fno-rtti", "-DADA_INCLUDE_URL_PATTERN=0"),
    ),
)
LINK_FLAGS: Final = (f"-Wl,-z,stack-size={_C_STACK_BYTES}", "-Wl,--strip-all", "-Wl,--gc-sections")

_WASM_MAGIC: Final = b"\0asm\x01\0\0\0"
_IMPORT_SECTION: Final = 2


def build_key(native: Path = NATIVE) -> str:
    """Return the digest of everything that goes into the module."""
    digest = hashlib.sha256()
    recipe = [
        ZIG_VERSION,
        [[sdist.name, sdist.version, sdist.sha256] for sdist in SDISTS],
        [[name, [[p.old, p.new] for p in patches]] for name, patches in PATCHES.items()],
        [[unit.path, unit.flags] for unit in UNITS],
        FLAGS,
        LINK_FLAGS,
    ]
    digest.update(json.dumps(recipe).encode())
    for path in sorted(native.iterdir()):
        digest.update(f"\0{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build(outputs: Outputs, sources: Sources, steps: Steps) -> Path:
    """Return the built module, made only if it was not before."""

    def make(folder: Path) -> Path:
        return _make(folder, sources, steps)

    def waiting() -> None:
        steps.note("The JavaScript guest is being built by another process; waiting for it")

    return outputs.find_or_build(build_key(), WASM_NAME, make, waiting=waiting)


def _make(folder: Path, sources: Sources, steps: Steps) -> Path:
    zig = Zig(folder)
    with steps.step("Fetching the sources of QuickJS-NG and ada"):
        sources.fetch(SDISTS)
    _lay_out(folder, sources)
    with steps.step("Compiling the JavaScript guest"):
        zig.compile(UNITS, FLAGS)
    with steps.step("Linking the JavaScript guest"):
        wasm = zig.link(UNITS, LINK_FLAGS, WASM_NAME)
    _check(wasm.read_bytes())
    return wasm


def _lay_out(folder: Path, sources: Sources) -> None:
    """Put the sources where the flags name them."""
    unpacked = folder / "unpacked"
    quickjs = sources.unpack(_QUICKJS, unpacked) / "upstream-quickjs"
    ada = sources.unpack(_ADA, unpacked) / "ada_url"
    for source, name in ((quickjs, "quickjs"), (ada, "ada")):
        if not source.is_dir():
            raise BuildFailed(
                f"The source distribution has no {source.name}: its layout is not the reviewed one."
            )
        source.rename(folder / name)
    shutil.copytree(NATIVE, folder / "native")
    patched = folder / "patched"
    patched.mkdir()
    for name, replacements in PATCHES.items():
        upstream = folder / "quickjs" / name
        text = apply(upstream.read_text(encoding="utf-8"), name, replacements)
        patched.joinpath(name).write_text(text, encoding="utf-8")
        upstream.unlink()  # so that nothing but the patched one can be included


def _check(wasm: bytes) -> None:
    """See that the module asks nothing of a host, and that its memory is its whole state."""
    # Imported here, since it brings the engine in: a build that has nothing to do needs none of it.
    from belem.isolates.snapshot import split_guest

    if _IMPORT_SECTION in _section_ids(wasm):
        raise BuildFailed(
            "The module imports something; the guest must be closed. See native/freestanding.c."
        )
    split_guest(wasm)


def _section_ids(wasm: bytes) -> Sequence[int]:
    if not wasm.startswith(_WASM_MAGIC):
        raise BuildFailed("The linker's output is not a wasm module.")
    ids: list[int] = []
    at = len(_WASM_MAGIC)
    while at < len(wasm):
        ids.append(wasm[at])
        at, size, shift = at + 1, 0, 0
        while True:  # LEB128
            byte = wasm[at]
            size |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not byte & 0x80:
                break
        at += size
    return ids
