"""Belem: a Workers-style serverless runtime that you run yourself."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("belem")
