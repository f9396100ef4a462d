"""Rubrics."""

from ors.openenv import rubrics
from ors.openenv.rubrics import *

__all__ = rubrics.__all__
