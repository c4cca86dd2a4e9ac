"""The KV binding: Workers KV namespaces over aiokv."""

from belem.bindings.kv.errors import InvalidOption, KeyTooLong, KVError, StoreUnavailable, TooLarge
from belem.bindings.kv.namespace import KVNamespace
from belem.bindings.kv.naming import namespace_id

__all__ = [
    "InvalidOption",
    "KVError",
    "KVNamespace",
    "KeyTooLong",
    "StoreUnavailable",
    "TooLarge",
    "namespace_id",
]
