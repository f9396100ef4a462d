"""Task sources and their order. A source is plain data access: it knows no protocol and no environment."""

from ors.tasks.seeds import Seeds

__all__ = ["Seeds"]
