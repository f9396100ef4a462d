"""Clients of OpenEnv servers. Each name is imported when it is first used; the first client loads aiohttp."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "auto": ("AutoAction", "AutoEnv", "EnvironmentUnavailable"),
    "batch": ("Batch", "BatchError"),
    "env_client": ("EnvClient",),
    "frames": ("ServerError",),
    "generic": ("GenericAction", "GenericEnvClient"),
    "mcp_client": ("GenericMCPObservation", "MCPClientBase", "MCPToolClient"),
    "pending": ("Pending",),
    "rollouts": ("Played", "Rollouts"),
    "step_result": ("StepResult",),
    "sync_client": ("SyncEnvClient",),
    "task_api": ("TaskAPI",),
}
_HOME_OF = {name: f"ors.openenv.clients.{module}" for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'ors.openenv.clients' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
