"""Every test of a face runs twice: on a host in the server's process, and on one in a process that it spawned.

A spawned process imports the environments by name, so they stand in a module (`environments.py`), never in a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ors import Environment
from served import Served

Serve = Callable[..., Served]


@pytest.fixture(scope="module", params=["local", "remote"])
def host_process(request: pytest.FixtureRequest) -> str:
    """Where the sessions live."""
    return str(request.param)


@pytest.fixture(scope="module")
def serve(host_process: str) -> Iterator[Serve]:
    """`serve(Environment, …, **settings)` → a running server, the same one for all tests of a module that ask alike.

    With `fresh=True` the server is the test's own: for tests that drain it, stop it or fill it up.
    """
    shared: dict[Any, Served] = {}
    running: list[Served] = []

    def start(*environments: type[Environment], fresh: bool = False, **settings: Any) -> Served:
        key = (environments, tuple(sorted((name, repr(value)) for name, value in settings.items())))
        served = None if fresh else shared.get(key)
        if served is None or not served.running:
            host = {"local": "local", "remote": "spawned"}[host_process]
            served = Served(environments, **{"host_process": host, **settings})
            running.append(served)
            if not fresh:
                shared[key] = served
        return served

    yield start
    for served in running:
        served.stop()
