"""Version 1 of the daemon's protocol; the generated modules are committed."""
