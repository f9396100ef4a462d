"""What starts a server for a client and stops it again: a container, uv, or a process of this machine."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "base": ("ContainerProvider", "RuntimeProvider"),
    "docker": ("LocalDockerProvider",),
    "process": ("LocalProcessProvider", "UVProvider"),
    "swarm": ("DockerSwarmProvider", "KubernetesProvider"),
}
_HOME_OF = {name: f"ors.openenv.providers.{module}" for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'ors.openenv.providers' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
