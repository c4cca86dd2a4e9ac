"""From a project on disk to an upload."""

from collections.abc import Iterator

from belem.runtime.control.versions import Binding, Upload, check_worker_name
from belem.runtime.project import AIBinding, Bundle, KVBinding, Project

__all__ = ["upload_of"]


def upload_of(
    project: Project, bundle: Bundle, *, name: str | None = None, with_secrets: bool = False
) -> Upload:
    """Return what the project is as a version.

    Its secrets come from files for development: they belong in a dev server, and not in a deploy.
    """
    return Upload(
        worker=check_worker_name(name or project.name),
        main_module=bundle.main,
        modules=bundle.modules,
        bindings=tuple(_binding(binding) for binding in _used(project, bundle)),
        vars={**project.vars, **(project.secrets if with_secrets else {})},
        compatibility_date=project.compatibility_date,
        compatibility_flags=project.flags,
        cpu_ms=project.limits.cpu_ms,
        subrequests=project.limits.subrequests,
        isolation=project.isolation,
    )


def _used(project: Project, bundle: Bundle) -> Iterator[AIBinding | KVBinding]:
    """Leave out the AI that every bare file is offered where the worker does not ask for it.

    A daemon with a model in it is too much for a worker that only says hello.
    """
    for binding in project.bindings:
        offered = isinstance(binding, AIBinding) and binding.name in project.inferred
        if not offered or bundle.mentions(binding.name):
            yield binding


def _binding(binding: AIBinding | KVBinding) -> Binding:
    match binding:
        case AIBinding():
            return Binding(binding.name, "ai")
        case KVBinding():
            # A project without an id has the binding's name in its place: the namespace is the
            # worker's own.
            own = binding.namespace_id == binding.name
            return Binding(binding.name, "kv_namespace", None if own else binding.namespace_id)
