"""Outbound HTTP: what `fetch()` in a worker reaches the world through."""

from belem.bindings.fetch.outbound import Fetch

__all__ = ["Fetch"]
