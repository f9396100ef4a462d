"""Clients without types."""

from openenv._names import lazy

__all__ = ["GenericAction", "GenericEnvClient"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
