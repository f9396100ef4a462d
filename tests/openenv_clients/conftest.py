"""A stand-in of Docker's engine for each test, and that no process of a test outlives it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .engine import Engine
from .processes import MARK, of_project, wait_until


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    # the paths of sockets are short
    with tempfile.TemporaryDirectory(prefix="engine-") as folder, Engine(Path(folder)) as made:
        monkeypatch.setenv("DOCKER_HOST", made.host)
        yield made


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No server of the project is running after the test."""
    monkeypatch.setenv(*MARK)
    before = of_project()
    yield
    wait_until(lambda: of_project() <= before, "a server of this test is still running")
