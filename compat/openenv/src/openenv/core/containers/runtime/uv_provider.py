"""What runs the source of environments by uv."""

from openenv._names import lazy

__all__ = ["UVProvider"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
