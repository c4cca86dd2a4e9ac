"""The models that the daemon may serve: the catalogue of names, and the weights on this machine."""

from belem.runtime.inference.store.catalogue import Catalogue, Entry, user_catalogue_path
from belem.runtime.inference.store.errors import (
    CatalogueError,
    PullError,
    UnknownModel,
    UnsafePackage,
)
from belem.runtime.inference.store.model_store import ModelStore
from belem.runtime.inference.store.pulling import Progress, Pulled, Stage, pull
from belem.runtime.inference.store.schema import Model, Weights

__all__ = [
    "Catalogue",
    "CatalogueError",
    "Entry",
    "Model",
    "ModelStore",
    "Progress",
    "PullError",
    "Pulled",
    "Stage",
    "UnknownModel",
    "UnsafePackage",
    "Weights",
    "pull",
    "user_catalogue_path",
]
