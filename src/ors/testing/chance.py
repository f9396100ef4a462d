"""The random generators that a whole process shares: seeded while environments are played, and put back."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator

__all__ = ["kept_generators", "seed_generators"]


def seed_generators(text: str) -> None:
    """Seed them by a text."""
    random.seed(text)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(random.getrandbits(32))
        random.seed(text)


@contextlib.contextmanager
def kept_generators() -> Iterator[None]:
    """Whatever is seeded within, they go on afterwards as they would have."""
    state = random.getstate()
    numpy = sys.modules.get("numpy")
    of_numpy = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        random.setstate(state)
        if numpy is not None:
            numpy.random.set_state(of_numpy)
