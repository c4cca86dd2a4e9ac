"""Real programs from npm, installed at their first use into the user's cache folder."""

import subprocess
import sys
from pathlib import Path

from belem.sdk.folders import user_cache_directory

__all__ = ["npm_folder"]


def npm_folder(package: str, version: str) -> Path:
    """Return a folder in whose `node_modules` this version of the package is installed."""
    folder = user_cache_directory() / "npm" / f"{package}-{version}"
    done = folder / ".installed"
    if not done.exists():
        sys.stderr.write(f"installing {package} {version} with npm ...\n")
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--prefix", str(folder), f"{package}@{version}"]
        subprocess.run(command, check=True)
        done.touch()
    return folder
