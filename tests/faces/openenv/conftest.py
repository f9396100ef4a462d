"""Servers of OpenEnv environments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from served import Served

from .games import Adder, Bare, Rows, Streamed, Toolbox


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Several environments at one place; the first, which adds, also answers at the root."""
    running = Served([Adder, Bare, Rows, Streamed, Toolbox])
    yield running
    running.stop()
