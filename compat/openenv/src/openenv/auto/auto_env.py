"""Clients of environments by their name."""

from openenv._names import lazy

__all__ = ["AutoEnv"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
