"""The asynchronous client."""

from openenv._names import lazy

__all__ = ["EnvClient", "StepResult"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", __all__)
