"""Write a new project from a starter: the template files kept in `starters/`."""

import datetime
import json
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from belem.runtime.project.checks import Checker, worker_name
from belem.runtime.project.errors import StarterError

__all__ = ["Language", "create_starter"]

Language = Literal["ts", "js"]

# Git and packaging tools would act on files that are really called so.
_WRITTEN_AS = {"gitignore": ".gitignore"}
# What a folder may have in it and still be as good as empty.
_HARMLESS = frozenset({".git", ".DS_Store", ".idea", ".vscode"})


def create_starter(
    directory: Path, name: str, language: Language, *, today: datetime.date | None = None
) -> tuple[Path, ...]:
    """Write a project into a folder that is empty or not there yet; return the files written.

    `today` becomes the project's compatibility date.
    """
    worker_name(Checker(directory / "wrangler.jsonc"), "name", name)
    _refuse_full(directory)
    date = (today or datetime.datetime.now(datetime.UTC).date()).isoformat()
    values = {"{{name}}": name, "{{compatibility_date}}": date}
    written: list[Path] = []
    try:
        for path, template in _templates(
            directory, files("belem.runtime.project") / "starters", language
        ):
            text = template.read_text(encoding="utf-8")
            for mark, value in values.items():
                text = text.replace(mark, json.dumps(value)[1:-1])
            path.parent.mkdir(parents=True, exist_ok=True)
            # "x": a file that appeared meanwhile is not overwritten.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
    except OSError as error:
        raise StarterError(
            f"{error.filename or directory} cannot be written: {error.strerror}."
        ) from error
    return tuple(written)


def _refuse_full(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise StarterError(f"{directory} is a file; a project needs a folder.")
    found = sorted(entry.name for entry in directory.iterdir()) if directory.exists() else []
    there = [name for name in found if name not in _HARMLESS]
    if there:
        shown = ", ".join(there[:3]) + (", …" if len(there) > 3 else "")
        raise StarterError(
            f"{directory} is not empty: it has {shown}. Name a new folder, or empty this one first."
        )


def _templates(
    directory: Path, starters: Traversable, language: Language
) -> list[tuple[Path, Traversable]]:
    """Return where each template goes: those of all languages, then the language's own."""
    found: list[tuple[Path, Traversable]] = []
    pending = [(directory, starters / "all"), (directory, starters / language)]
    while pending:
        target, folder = pending.pop(0)
        for entry in sorted(folder.iterdir(), key=lambda each: each.name):
            path = target / _WRITTEN_AS.get(entry.name, entry.name)
            if entry.is_dir():
                pending.append((path, entry))
            else:
                found.append((path, entry))
    return found
