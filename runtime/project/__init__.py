"""What a project on disk is: its config, variables, modules, bundle and source maps."""

from belem.runtime.project.build import Builder, build_bundle
from belem.runtime.project.bundle import Bundle
from belem.runtime.project.discovery import worker_name_from
from belem.runtime.project.errors import (
    BundlerError,
    BundleTooLarge,
    ConfigError,
    ModuleNotFound,
    ProjectError,
    ProjectNotFound,
    SourceError,
    StarterError,
    UnsupportedModule,
)
from belem.runtime.project.positions import Position, SourceMap, code_frame
from belem.runtime.project.project import Project, load_project
from belem.runtime.project.settings import AIBinding, Binding, DevServer, KVBinding, Limits
from belem.runtime.project.stack import locate, map_stack
from belem.runtime.project.starter import create_starter

__all__ = [
    "AIBinding",
    "Binding",
    "Builder",
    "Bundle",
    "BundleTooLarge",
    "BundlerError",
    "ConfigError",
    "DevServer",
    "KVBinding",
    "Limits",
    "ModuleNotFound",
    "Position",
    "Project",
    "ProjectError",
    "ProjectNotFound",
    "SourceError",
    "SourceMap",
    "StarterError",
    "UnsupportedModule",
    "build_bundle",
    "code_frame",
    "create_starter",
    "load_project",
    "locate",
    "map_stack",
    "worker_name_from",
]
