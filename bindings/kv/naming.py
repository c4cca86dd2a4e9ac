"""Which namespace a binding means."""

from typing import Final

from belem.sdk.errors import UserError

__all__ = ["namespace_id"]

# Two of them and the slash between fit into a store's namespace.
_MAX_NAME_BYTES: Final = 127


def namespace_id(binding: str, configured_id: str | None, *, worker: str | None = None) -> str:
    """Return the id of the namespace behind a binding.

    That is the `id` of the config's `kv_namespaces` entry: workers with the same id share it.
    Without one it is the binding's name, and the worker's own if a worker is given. A name has no
    slash, so a worker's own namespace is nobody's id.
    """
    name = _checked("id", binding if configured_id is None else configured_id)
    if configured_id is not None or worker is None:
        return name
    return f"{_checked('worker', worker)}/{name}"


def _checked(noun: str, name: str) -> str:
    size_bytes = len(name.encode(errors="replace"))
    if not 1 <= size_bytes <= _MAX_NAME_BYTES or not name.isprintable() or "/" in name:
        raise UserError(
            f"KV namespace {noun} {name!r} must be 1 to {_MAX_NAME_BYTES} bytes of printable text "
            "without a slash."
        )
    return name
