"""The client of the Open Reward Standard: `ORS` for synchronous code, `AsyncORS` for asynchronous.

Each name is imported when it is first used; the first that needs HTTP loads aiohttp.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ors.client.async_task_sequence import AsyncTaskSequence
    from ors.client.blocking import ORS, Environment, EnvironmentsAPI, Session
    from ors.client.blocking import Session as SyncSession
    from ors.client.client import AsyncEnvironmentsAPI, AsyncORS
    from ors.client.environment import AsyncEnvironment
    from ors.client.formats import Provider, convert_tool_response
    from ors.client.gathering import Episode
    from ors.client.order import Cursor
    from ors.client.retrying import Retry
    from ors.client.rewards import Reduction, Rewards
    from ors.client.session import AsyncSession
    from ors.client.task_sequence import TaskSequence
    from ors.client.tasks import SplitName, Task
    from ors.errors import (
        AuthenticationError,
        ClientError,
        DeadlineExceeded,
        MaxRetriesError,
        ProtocolError,
        RequestLost,
        RequestRefused,
        SessionLost,
        SessionTerminatedError,
        ToolCallError,
        ToolFailed,
    )
    from ors.types import ImageBlock, TextBlock, ToolOutput, ToolSpec

_HOMES = {
    "ors.client.blocking": ("ORS", "Environment", "EnvironmentsAPI", "Session"),
    "ors.client.async_task_sequence": ("AsyncTaskSequence",),
    "ors.client.client": ("AsyncEnvironmentsAPI", "AsyncORS"),
    "ors.client.environment": ("AsyncEnvironment",),
    "ors.client.formats": ("Provider", "convert_tool_response"),
    "ors.client.gathering": ("Episode",),
    "ors.client.retrying": ("Retry",),
    "ors.client.rewards": ("Reduction", "Rewards"),
    "ors.client.order": ("Cursor",),
    "ors.client.session": ("AsyncSession",),
    "ors.client.task_sequence": ("TaskSequence",),
    "ors.client.tasks": ("SplitName", "Task"),
    "ors.errors": (
        "AuthenticationError",
        "ClientError",
        "DeadlineExceeded",
        "MaxRetriesError",
        "ProtocolError",
        "RequestLost",
        "RequestRefused",
        "SessionLost",
        "SessionTerminatedError",
        "ToolCallError",
        "ToolFailed",
    ),
    "ors.types": ("ImageBlock", "TextBlock", "ToolOutput", "ToolSpec"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ORS",
    "AsyncEnvironment",
    "AsyncEnvironmentsAPI",
    "AsyncORS",
    "AsyncSession",
    "AsyncTaskSequence",
    "AuthenticationError",
    "ClientError",
    "Cursor",
    "DeadlineExceeded",
    "Environment",
    "EnvironmentsAPI",
    "Episode",
    "ImageBlock",
    "MaxRetriesError",
    "ProtocolError",
    "Provider",
    "Reduction",
    "RequestLost",
    "RequestRefused",
    "Retry",
    "Rewards",
    "Session",
    "SessionLost",
    "SessionTerminatedError",
    "SplitName",
    "SyncSession",
    "Task",
    "TaskSequence",
    "TextBlock",
    "ToolCallError",
    "ToolFailed",
    "ToolOutput",
    "ToolSpec",
    "convert_tool_response",
]


def __getattr__(name: str) -> Any:
    if name == "SyncSession":
        value = __getattr__("Session")
    elif (home := _HOME_OF.get(name)) is not None:
        value = getattr(importlib.import_module(home), name)
    else:
        raise AttributeError(f"module 'ors.client' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
