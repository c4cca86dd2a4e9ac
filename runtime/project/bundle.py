"""What a guest is given: every module as JavaScript, and the way back to its source."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from belem.runtime.project.errors import BundleTooLarge
from belem.runtime.project.positions import SourceMap

__all__ = ["SIZE_LIMIT_BYTES", "Bundle", "make_bundle"]

SIZE_LIMIT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bundle:
    """A worker's code. Module names are paths from the project's root, with `/`.

    `watched` are the files whose change makes another bundle; `sha256` names the content.
    """

    main: str
    modules: Mapping[str, str]
    source_maps: Mapping[str, SourceMap]
    watched: frozenset[Path]
    sha256: str
    size_bytes: int

    def mentions(self, name: str) -> bool:
        """Tell whether any module has this word in it, as code that uses a binding must."""
        word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        return any(word.search(source) for source in self.modules.values())


def make_bundle(
    main: str,
    modules: Mapping[str, str],
    source_maps: Mapping[str, SourceMap],
    watched: Iterable[Path],
) -> Bundle:
    """Measure, name and freeze what a build made; raise BundleTooLarge over the limit."""
    digest = hashlib.sha256(main.encode())
    size_bytes = 0
    for name in sorted(modules):
        for part in (name.encode(), modules[name].encode()):
            # Lengths first: no two different sets of modules are the same bytes.
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        size_bytes += len(part)
    if size_bytes > SIZE_LIMIT_BYTES:
        raise BundleTooLarge(
            f"The worker's code is {size_bytes} bytes; the limit is {SIZE_LIMIT_BYTES} bytes."
        )
    return Bundle(
        main=main,
        modules=MappingProxyType(dict(modules)),
        source_maps=MappingProxyType(dict(source_maps)),
        watched=frozenset(watched),
        sha256=digest.hexdigest(),
        size_bytes=size_bytes,
    )
