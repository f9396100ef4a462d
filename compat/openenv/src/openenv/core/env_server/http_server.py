"""Servers of environments."""

from openenv._names import lazy

__all__ = ["HTTPEnvServer", "create_app", "create_fastapi_app"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
