"""The names of `ors.openenv.exceptions`."""

from ors.openenv import exceptions
from ors.openenv.exceptions import *

__all__ = exceptions.__all__
