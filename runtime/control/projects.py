"""From a project on disk to an upload."""

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
        bindings=tuple(_binding(binding) for binding in project.bindings),
        vars={**project.vars, **(project.secrets if with_secrets else {})},
        compatibility_date=project.compatibility_date,
        compatibility_flags=project.flags,
        cpu_ms=project.limits.cpu_ms,
    )


def _binding(binding: AIBinding | KVBinding) -> Binding:
    match binding:
        case AIBinding():
            return Binding(binding.name, "ai")
        case KVBinding():
            # A project without an id has the binding's name in its place: the namespace is the
            # worker's own.
            own = binding.namespace_id == binding.name
            return Binding(binding.name, "kv_namespace", None if own else binding.namespace_id)
