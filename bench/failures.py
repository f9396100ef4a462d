"""What could not be measured: one server that fails must not lose the figures of all others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

FAILURES: list[str] = []
"""What went wrong in this run, in words."""


@contextmanager
def noting(what: str) -> Iterator[None]:
    """Go on after a failure in this block, and remember it for the report."""
    try:
        yield
    except Exception as exc:
        group = isinstance(exc, ExceptionGroup)
        words = f"{what}: {exc.exceptions[0] if group else exc}"
        print(f"  FAILED: {words}", file=sys.stderr, flush=True)
        FAILURES.append(words)
