"""Two distributions with one import name: saying so, and how to mend it."""

from __future__ import annotations

import importlib.metadata
import logging

__all__ = ["warn_if_shadowed"]

logger = logging.getLogger("ors.server")


def warn_if_shadowed() -> bool:
    """Warn when the distribution ors-sdk is installed beside this one; returns whether it is."""
    try:
        version = importlib.metadata.version("ors-sdk")
    except importlib.metadata.PackageNotFoundError:
        return False
    logger.warning(
        "ors-sdk %s is installed beside ors-kit and has the same import name, so each may have overwritten files of "
        "the other: run `pip uninstall ors-sdk`, then `pip install --force-reinstall ors-kit`",
        version,
    )
    return True
