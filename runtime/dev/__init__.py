"""The dev server: watch, rebuild, reload, show errors."""

from belem.runtime.dev.console import DevConsole
from belem.runtime.dev.run import DevSettings, dev

__all__ = ["DevConsole", "DevSettings", "dev"]
