"""The synchronous client."""

from openenv._names import lazy

__all__ = ["SyncEnvClient"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
