"""One server and one driver for each client, for all tests of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .processes import DRIVERS, Driver, ServedEnvironments, log_file

LIMIT_S = 300
"""For one test with what it starts: one of the clients takes seconds of processor time to be imported."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give these tests longer than others, so that a busy machine fails none of them."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(LIMIT_S))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedEnvironments]:
    """Our server as `Server([...]).run()` starts it. It has to end with 0 when it is asked to."""
    with ServedEnvironments(log_file(tmp_path_factory.mktemp("server"), "server")) as served:
        yield served


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Driver]]:
    """The driver of a peer, by its name; started when first asked for, and again after one that had to be killed."""
    running: dict[str, Driver] = {}

    def get(peer: str) -> Driver:
        if peer not in running or not running[peer].alive:
            running[peer] = Driver(peer, log_file(tmp_path_factory.mktemp("driver"), peer))
        return running[peer]

    yield get
    for driver in running.values():
        driver.close()


@pytest.fixture(params=sorted(DRIVERS))
def driver(request: pytest.FixtureRequest, drivers: Callable[[str], Driver]) -> Driver:
    """Each of the two clients in turn."""
    return drivers(request.param)


@pytest.fixture
def openreward(drivers: Callable[[str], Driver]) -> Driver:
    """The client of openreward alone."""
    return drivers("openreward")


@pytest.fixture
def ors_sdk(drivers: Callable[[str], Driver]) -> Driver:
    """The client of ors-sdk alone."""
    return drivers("ors-sdk")


@pytest.fixture
def play(driver: Driver, server: ServedEnvironments) -> Callable[..., Any]:
    """Do a scenario on the common server: `play(scenario, sync=…, **arguments)`."""
    return lambda scenario, **args: driver.play(server.url, scenario, **args)
