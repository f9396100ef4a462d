"""An older name of `openenv.core`, which some environments still try first or last."""

import importlib
import sys
import warnings

from openenv import core
from openenv.core import *

warnings.warn("openenv_core is an old name: import from openenv.core", DeprecationWarning, stacklevel=2)

for _part in ("client_types", "containers", "env_client", "env_server", "rubrics", "tools", "utils"):
    sys.modules[f"{__name__}.{_part}"] = importlib.import_module(f"openenv.core.{_part}")

__all__ = core.__all__


def __getattr__(name: str) -> object:
    return getattr(core, name)
