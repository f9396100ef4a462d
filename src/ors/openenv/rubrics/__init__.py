"""Rubrics: rewards that are computed beside an environment, put together from parts that can be looked at."""

from ors.openenv.rubrics.base import Rubric
from ors.openenv.rubrics.containers import Gate, RubricDict, RubricList, Sequential, WeightedSum
from ors.openenv.rubrics.llm_judge import LLMJudge
from ors.openenv.rubrics.trajectory import ExponentialDiscountingTrajectoryRubric, TrajectoryRubric

__all__ = [
    "ExponentialDiscountingTrajectoryRubric",
    "Gate",
    "LLMJudge",
    "Rubric",
    "RubricDict",
    "RubricList",
    "Sequential",
    "TrajectoryRubric",
    "WeightedSum",
]
