"""The clients of the `openenv` package, unchanged, on our server."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faces.openenv.games import Adder, Alone, Move, Seen, Toolbox
from ors.openenv.server import create_app
from served import Served, wait_until

from .peers import clean_environ, peer_python

DRIVER = Path(__file__).parent / "drivers" / "with_openenv.py"


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Any]]:
    """What came of each scenario, all played by one process: the package takes seconds to be imported."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 4096, "the limit of open files is too low for a thousand sessions"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    many = Served([create_app(Adder, Move, Seen)])
    one = Served([Alone])
    toolbox = Served([Toolbox])
    scenarios: list[list[Any]] = [[name, many.url] for name in ("typed", "errors", "large")]
    scenarios += [["many", many.url, number] for number in (64, 1000)]
    scenarios += [["capacity", one.url], ["tools", toolbox.url], ["trl", many.url, 64]]
    scenarios += [["verifiers", many.url], ["verifiers", toolbox.url]]
    try:
        done = subprocess.run(
            [str(peer_python("openenv")), str(DRIVER), json.dumps(scenarios)],
            capture_output=True,
            text=True,
            env=clean_environ(FASTMCP_CHECK_FOR_UPDATES="off"),
            timeout=110,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        outcomes = json.loads(done.stdout.splitlines()[-1])
        names = [f"{name}{more[0] if more else ''}" for name, _, *more in scenarios]
        names[-1] = "verifiers with tools"
        # nothing is left behind on any
        for server in (many, one, toolbox):
            wait_until(lambda server=server: server.status()["sessions"] == 0)  # type: ignore[misc]
        yield dict(zip(names, outcomes, strict=True))
    finally:
        for server in (many, one, toolbox):
            server.stop()


def test_a_typed_client(told: Any) -> None:
    assert told["typed"] == {
        "begun": [0, None, False],
        "stepped": [4, None],
        "metadata": {"note": "seen"},
        "state": ["theirs", 2, 4],
        "ended": [1.0, True],
        "again": 0,
    }


def test_errors_are_raised_with_their_codes(told: Any) -> None:
    errors = told["errors"]
    assert "it fell over" in errors["fails"] and "EXECUTION_ERROR" in errors["fails"]
    assert "VALIDATION_ERROR" in errors["invalid"]
    assert errors["after"] == 2


def test_large_observations(told: Any) -> None:
    assert told["large"] == [10, 100_000, 20_000_000]


def test_a_refused_client_is_told_and_its_place_is_free_later(told: Any) -> None:
    capacity = told["capacity"]
    assert "CAPACITY_REACHED" in capacity["refused"] and "1/1" in capacity["refused"]
    assert capacity["after"] is False


def test_their_client_for_tools_counts_its_calls(told: Any) -> None:
    """Their server would say 0: calls go around the environment there (facts 6.14)."""
    tools = told["tools"]
    assert tools["listed"] == ["add", "fail"] and tools["sums"] == [1, 2, 3]
    assert "it fell over" in tools["failed"] and "nobody" in tools["unknown"]
    assert tools["steps"] == 5


@pytest.mark.parametrize("number", [64, 1000])
def test_many_sessions_side_by_side(told: Any, number: int) -> None:
    assert told[f"many{number}"] == {"played": number, "wrong": 0, "first": []}


def test_the_class_that_trl_documents(told: Any) -> None:
    """64 generations, each with a socket for the whole run, called one after another from one thread."""
    assert told["trl64"] == [[True] * 5] * 2


def test_the_task_set_of_verifiers(told: Any) -> None:
    """It asks for the schema first, and for tools before any reset."""
    steps = told["verifiers"]
    assert steps["title"] == "Move" and "tools" not in steps
    assert steps["rewards"] == [[1.0, True]] * 2
    tools = told["verifiers with tools"]
    assert (tools["title"], tools["tools"]) == ("Action", ["add", "fail"])
    # each call is paid half of how many there were
    assert tools["rewards"] == [[0.5 + 1.0 + 1.5, False], [2.0 + 2.5 + 3.0, False]]
