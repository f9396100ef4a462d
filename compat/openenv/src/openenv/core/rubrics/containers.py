"""The names of `ors.openenv.rubrics.containers`."""

from ors.openenv.rubrics import containers
from ors.openenv.rubrics.containers import *

__all__ = containers.__all__
