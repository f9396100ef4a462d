"""Clients of environments with tools."""

from openenv._names import lazy

__all__ = ["MCPClientBase", "MCPToolClient"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__, ["GenericMCPObservation"])
