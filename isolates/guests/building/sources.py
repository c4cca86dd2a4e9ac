"""Pinned source distributions, fetched by pip from whatever index the user has, and never run."""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from belem.isolates.guests.building.errors import BuildFailed

__all__ = ["Download", "Sdist", "Sources", "pip_download"]

_PIP_TIMEOUT_SECONDS: Final = 300
_SHOWN_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class Sdist:
    """A source distribution and the digest of its archive."""

    name: str
    version: str
    sha256: str

    @property
    def folder_name(self) -> str:
        """Return the folder in the archive, which is also the archive's name (PEP 625)."""
        return f"{self.name.replace('-', '_')}-{self.version}"

    @property
    def file_name(self) -> str:
        """Return the archive's name."""
        return f"{self.folder_name}.tar.gz"


Download = Callable[[Sequence[Sdist], Path], None]

# pip insists on asking an sdist for its metadata before it hands the archive over, which runs the
# sdist's own set-up code. So pip is given this backend under the name that the sdists ask for; it
# only copies what is written in the archive. The archives' digests are checked by pip before that
# (--require-hashes), and by us again after.
_STAND_IN_BACKEND: Final = """\
from pathlib import Path

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = Path(folder, "stand_in.dist-info")
    info.mkdir()
    fields = Path("PKG-INFO").read_text(encoding="utf-8").partition("\\n\\n")[0]
    info.joinpath("METADATA").write_text(fields + "\\n", encoding="utf-8")
    return info.name
"""


def pip_download(sdists: Sequence[Sdist], folder: Path) -> None:
    """Download archives into a folder with this interpreter's pip, running no code of theirs."""
    with tempfile.TemporaryDirectory(prefix="belem-backend-") as scratch:
        backend = Path(scratch, "setuptools")
        backend.mkdir()
        backend.joinpath("__init__.py").touch()
        backend.joinpath("build_meta.py").write_text(_STAND_IN_BACKEND, encoding="utf-8")
        requirements = Path(scratch, "requirements.txt")
        requirements.write_text(
            "".join(f"{s.name}=={s.version} --hash=sha256:{s.sha256}\n" for s in sdists),
            encoding="utf-8",
        )
        names = ",".join(s.name for s in sdists)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            names,
        ]
        command += ["--no-build-isolation", "--require-hashes", "--requirement", str(requirements)]
        command += ["--disable-pip-version-check", "--no-input", "--dest", str(folder)]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "PYTHONPATH": scratch},
                capture_output=True,
                text=True,
                check=False,
                timeout=_PIP_TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise BuildFailed(
                f"pip did not download {names} in {_PIP_TIMEOUT_SECONDS} seconds. "
                "See that your package index answers, then build again."
            ) from None
    if done.returncode != 0:
        output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_SHOWN_LINES:])
        raise BuildFailed(
            f"pip could not download {names}:\n{output}\n"
            "See that your package index has these source distributions (`pip config list`), "
            "then build again."
        )


class Sources:
    """A folder of downloaded archives."""

    def __init__(self, folder: Path, *, download: Download = pip_download) -> None:
        self._folder = folder
        self._download = download

    def fetch(self, sdists: Sequence[Sdist]) -> None:
        """Have every archive in the folder, its digest checked."""
        self._folder.mkdir(parents=True, exist_ok=True)
        missing = [sdist for sdist in sdists if self._digest(self._path(sdist)) != sdist.sha256]
        if not missing:
            return
        # Downloaded beside the folder and moved: an archive there is whole or not there.
        with tempfile.TemporaryDirectory(prefix="download-", dir=self._folder) as scratch:
            self._download(missing, Path(scratch))
            for sdist in missing:
                archive = Path(scratch, sdist.file_name)
                digest = self._digest(archive)
                if digest is None:
                    raise BuildFailed(
                        f"The package index gave no {sdist.file_name}. "
                        f"See that it has the source distribution of {sdist.name} {sdist.version}."
                    )
                if digest != sdist.sha256:
                    raise BuildFailed(
                        f"{sdist.file_name} has the digest {digest}; the reviewed one has "
                        f"{sdist.sha256}. Your package index serves another file: find out why "
                        "before you build with it."
                    )
                archive.replace(self._path(sdist))

    def unpack(self, sdist: Sdist, folder: Path) -> Path:
        """Unpack a fetched archive into a folder; return the folder of its files."""
        with tarfile.open(self._path(sdist)) as archive:
            archive.extractall(folder, filter="data")  # refuses paths that leave the folder
        return folder / sdist.folder_name

    def _path(self, sdist: Sdist) -> Path:
        return self._folder / sdist.file_name

    @staticmethod
    def _digest(path: Path) -> str | None:
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return None
