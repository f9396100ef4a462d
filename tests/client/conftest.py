"""A real server for client tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from served import Served

from .played import SEEN, Played


@pytest.fixture(scope="package")
def served() -> Iterator[Served]:
    server = Served([Played], api_keys=["k-123456789"])
    yield server
    server.stop()


@pytest.fixture
def url(served: Served, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ORS_API_KEY", "k-123456789")
    SEEN.clear()
    return served.url
