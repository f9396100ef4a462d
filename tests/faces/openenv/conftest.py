"""Servers of OpenEnv environments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from served import Served, wait_until

from .games import Adder, Bare, Rows, Streamed, Toolbox


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Several environments at one place; the first, which adds, also answers at the root."""
    running = Served([Adder, Bare, Rows, Streamed, Toolbox])
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def calm(request: pytest.FixtureRequest) -> None:
    """What the test before has left is over, so that instances can be counted."""
    if "served" in request.fixturenames:
        running: Served = request.getfixturevalue("served")
        talks = running.application.openenv.sessions  # type: ignore[union-attr]
        wait_until(lambda: not talks.attached and not running.status()["running"] and not running.host._ending)
