"""The names of `ors.openenv.rubrics.base`."""

from ors.openenv.rubrics import base
from ors.openenv.rubrics.base import *

__all__ = base.__all__
