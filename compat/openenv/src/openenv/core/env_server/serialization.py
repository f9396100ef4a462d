"""The names of `ors.openenv.serialization`."""

from ors.openenv import serialization
from ors.openenv.serialization import *

__all__ = serialization.__all__
