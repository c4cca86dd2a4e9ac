"""The dev server: watch, rebuild, reload, show errors."""
