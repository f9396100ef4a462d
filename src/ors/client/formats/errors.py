"""What cannot be said in a provider's format."""

from __future__ import annotations

from ors.errors import ORSError

__all__ = ["FormatError"]


class FormatError(ORSError, ValueError):
    """Something cannot be said in a provider's format; the message names the tool or block, the place and the rule."""
