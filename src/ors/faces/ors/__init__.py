"""The Open Reward Standard: HTTP and server-sent events."""

from ors.faces.ors.face import ORSFace

__all__ = ["ORSFace"]
