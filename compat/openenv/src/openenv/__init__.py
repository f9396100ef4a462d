"""The import paths of the `openenv` package, over ORS Kit."""

from __future__ import annotations

from importlib import import_module, metadata

from openenv._names import lazy

try:
    __version__ = metadata.version("ors-kit-openenv")
except metadata.PackageNotFoundError:  # run from the source tree
    __version__ = "0.0.0"

core = import_module("openenv.core")

__all__ = ["AutoAction", "AutoEnv", "GenericAction", "GenericEnvClient", "SyncEnvClient", "core"]
__getattr__, __dir__ = lazy(
    __name__, "ors.openenv", ["AutoAction", "AutoEnv", "GenericAction", "GenericEnvClient", "SyncEnvClient"]
)
