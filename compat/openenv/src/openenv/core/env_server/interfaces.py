"""`Environment` and what goes with it."""

from ors.openenv import environment
from ors.openenv.environment import *
from ors.openenv.models import Action, EnvironmentMetadata, Observation, State

__all__ = sorted({*environment.__all__, "Action", "EnvironmentMetadata", "Observation", "State"})
