"""ORS Kit: host any reinforcement-learning environment for language models, written once, over every protocol.

The names below are the public ones. Each is imported when it is first used, so that `import ors` costs nothing that a
program does not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ors._version import __version__

if TYPE_CHECKING:
    from ors.environment import Environment, Toolset
    from ors.errors import AuthoringError, ORSError, ToolError
    from ors.server import Server
    from ors.tools import terminal, tool
    from ors.types import (
        Blocks,
        CreateSession,
        ImageBlock,
        JSONObject,
        JSONValue,
        ListToolsOutput,
        RunToolError,
        RunToolOutput,
        RunToolSuccess,
        Split,
        TerminalToolSpec,
        TextBlock,
        ToolCall,
        ToolOutput,
        ToolSpec,
    )

_HOMES = {
    "environment": ("Environment", "Toolset"),
    "errors": ("AuthoringError", "ORSError", "ToolError"),
    "server": ("Server",),
    "tools": ("terminal", "tool"),
    "types": (
        "Blocks",
        "CreateSession",
        "ImageBlock",
        "JSONObject",
        "JSONValue",
        "ListToolsOutput",
        "RunToolError",
        "RunToolOutput",
        "RunToolSuccess",
        "Split",
        "TerminalToolSpec",
        "TextBlock",
        "ToolCall",
        "ToolOutput",
        "ToolSpec",
    ),
}
_HOME_OF = {name: f"ors.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
    "AuthoringError",
    "Blocks",
    "CreateSession",
    "Environment",
    "ImageBlock",
    "JSONObject",
    "JSONValue",
    "ListToolsOutput",
    "ORSError",
    "RunToolError",
    "RunToolOutput",
    "RunToolSuccess",
    "Server",
    "Split",
    "TerminalToolSpec",
    "TextBlock",
    "ToolCall",
    "ToolError",
    "ToolOutput",
    "ToolSpec",
    "Toolset",
    "__version__",
    "terminal",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'ors' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
