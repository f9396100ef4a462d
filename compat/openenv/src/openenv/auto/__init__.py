"""Environments by their name."""

from openenv._names import lazy

__all__ = ["AutoAction", "AutoEnv"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
