"""Actions, observations, states, and the messages of servers and clients."""

from ors.openenv import messages, models
from ors.openenv.messages import *
from ors.openenv.models import *

__all__ = sorted({*models.__all__, *messages.__all__})
