"""Which namespace a binding means."""

from belem.bindings.aiokv import MAX_NAMESPACE_BYTES
from belem.sdk.errors import UserError

__all__ = ["namespace_id"]


def namespace_id(binding: str, configured_id: str | None) -> str:
    """Return the id of the namespace behind a binding.

    That is the `id` of the config's `kv_namespaces` entry. Without one it is the binding's name:
    two workers that share a store share a namespace when they bind the same name, or give the same
    id.
    """
    name = binding if configured_id is None else configured_id
    if (
        not name
        or len(name.encode(errors="replace")) > MAX_NAMESPACE_BYTES
        or not name.isprintable()
    ):
        raise UserError(
            f"KV namespace id {name!r} must be 1 to {MAX_NAMESPACE_BYTES} bytes of printable text."
        )
    return name
