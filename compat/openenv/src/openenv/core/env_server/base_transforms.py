"""Transforms that come with the library."""

from ors.openenv.transforms import CompositeTransform, NullTransform

__all__ = ["CompositeTransform", "NullTransform"]
