"""`Toolset` where existing code imports it from; its home is `ors.environment`."""

from __future__ import annotations

from ors.environment import Toolset

__all__ = ["Toolset"]
