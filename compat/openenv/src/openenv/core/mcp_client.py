"""Clients of environments with tools."""

from openenv._names import lazy

__all__ = ["GenericMCPObservation", "MCPClientBase", "MCPToolClient"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
