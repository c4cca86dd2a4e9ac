"""The command line. Each file is one command; it parses and prints, and the work is elsewhere."""

from belem.runtime.cli.root import belem, main

__all__ = ["belem", "main"]
