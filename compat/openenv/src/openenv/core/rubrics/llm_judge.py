"""The names of `ors.openenv.rubrics.llm_judge`."""

from ors.openenv.rubrics import llm_judge
from ors.openenv.rubrics.llm_judge import *

__all__ = llm_judge.__all__
