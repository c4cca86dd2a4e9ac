"""One worker under development: the newest save that works, and what is wrong with the newest."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from belem.isolates import GuestThrew, LogLine
from belem.runtime.control import Binding
from belem.runtime.control.projects import upload_of
from belem.runtime.dev.problem import Problem, describe_problem
from belem.runtime.project import (
    Builder,
    Bundle,
    Project,
    ProjectError,
    code_frame,
    load_project,
    map_stack,
)
from belem.runtime.server import Composer, Explanation, LiveWorker, Route
from belem.sdk import BelemError

__all__ = ["Session", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """What one build came to."""

    duration_ms: float
    warnings: tuple[str, ...] = ()
    problem: Problem | None = None


class Session:
    """Builds the project again and again; swaps each version that works into the live worker.

    A build that fails changes nothing for requests in flight; `watched` then also has the files
    whose change may mend it. Builds run one at a time: `rebuild` is called by one loop only.
    """

    def __init__(
        self,
        path: Path,
        environment: str | None,
        project: Project,
        composer: Composer,
        builder: Builder,
        log: Callable[[LogLine], None],
    ) -> None:
        self._path = path
        self._environment = environment
        self._composer = composer
        self._builder = builder
        self._log = log
        self._worker: LiveWorker | None = None
        self._bundle: Bundle | None = None
        self.project = project
        self.bindings: tuple[Binding, ...] = ()
        self.watched: frozenset[Path] = project.watched

    @property
    def needs_inference(self) -> bool:
        """Tell whether the worker has an AI binding."""
        return any(binding.type == "ai" for binding in self.bindings)

    async def rebuild(self) -> Step:
        """Build what is on disk now, and send new requests to it if it works."""
        started_s = time.perf_counter()
        problem: Problem | None = None
        before = self.project.warnings
        try:
            await self._load()
            await self._go_live()
        except BelemError as error:
            problem = describe_problem(error, self.map_stack)
            self._keep_watching(error)
        new = tuple(text for text in self.project.warnings if text not in before)
        return Step((time.perf_counter() - started_s) * 1000, new, problem)

    def route(self, host: str, path: bytes) -> Route | None:
        """Lead every request to the worker."""
        return Route(self._worker) if self._worker is not None else None

    def map_stack(self, stack: str) -> str:
        """Return a stack of the guest's with the places in the sources."""
        return stack if self._bundle is None else map_stack(self._bundle, stack)

    def explain(self, error: GuestThrew) -> Explanation:
        """Say what a handler threw: the mapped stack, and the lines around its first frame."""
        lines = self.map_stack(error.stack).splitlines()
        stack = "\n".join(line for line in lines if line.startswith("    at "))
        return Explanation(error.name, error.text, stack, self._excerpt(stack))

    async def aclose(self) -> None:
        """Close the live worker."""
        if self._worker is not None:
            await self._worker.drain(grace_seconds=2)

    async def _load(self) -> None:
        self.project = await asyncio.to_thread(
            load_project, self._path, environment=self._environment
        )
        self.watched = self.project.watched
        self._bundle = await asyncio.to_thread(self._builder.build, self.project)
        self.watched |= self._bundle.watched

    async def _go_live(self) -> None:
        assert self._bundle is not None
        upload = upload_of(self.project, self._bundle, with_secrets=True)
        self.bindings = upload.bindings
        revision = await self._composer.build(
            upload, version=self._bundle.sha256[:12], own_namespaces=False
        )
        for line in revision.image.logs:
            self._log(line)
        if self._worker is None:
            host = self._composer.host
            self._worker = LiveWorker(upload.worker, host, revision, log=self._log)
        else:
            self._worker.swap(revision)

    def _keep_watching(self, error: BelemError) -> None:
        if isinstance(error, ProjectError):
            self.watched |= error.watched
        if self._bundle is not None:
            self.watched |= self._bundle.watched

    def _excerpt(self, stack: str) -> str:
        for line in stack.splitlines():
            place = line.rsplit("(", 1)[-1].rstrip(")").rsplit(":", 2)
            if len(place) == 3 and place[1].isdecimal() and place[2].isdecimal():
                return self._frame(place[0].strip(), int(place[1]), int(place[2]))
        return ""

    def _frame(self, file: str, line: int, column: int) -> str:
        path = self.project.root / file
        if path not in self.watched:
            return ""
        try:
            return code_frame(path.read_text(encoding="utf-8"), line, column)
        except (OSError, UnicodeDecodeError):
            return ""
