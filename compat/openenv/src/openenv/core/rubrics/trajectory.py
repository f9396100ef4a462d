"""The names of `ors.openenv.rubrics.trajectory`."""

from ors.openenv.rubrics import trajectory
from ors.openenv.rubrics.trajectory import *

__all__ = trajectory.__all__
