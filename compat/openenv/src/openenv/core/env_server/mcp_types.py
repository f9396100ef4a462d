"""The names of `ors.openenv.mcp_types`."""

from ors.openenv import mcp_types
from ors.openenv.mcp_types import *

__all__ = mcp_types.__all__
