"""The digests behind `crypto.subtle.digest`."""

from belem.bindings.crypto.digests import Crypto

__all__ = ["Crypto"]
