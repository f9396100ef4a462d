"""Faults of OpenEnv's server that its authors meet, by their numbers in docs/openenv-faults.md: what is done instead.

Those that have a test where the part is tested are named on that page with it.
"""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import ors.openenv
from openenv_authoring import tools_env
from openenv_authoring.play import Least, offering, staged
from ors.adapters.openenv_environment import OpenEnvOffering
from ors.openenv import Action, Observation
from served import until

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[2]


async def test_6_21_slow_constructors_wait_side_by_side_and_delay_nobody() -> None:
    gate = threading.Barrier(9)

    class Slow(Least):
        def __init__(self) -> None:
            gate.wait(20)  # goes on when all are inside at once, and this test with them

    async with staged(OpenEnvOffering(Slow, Action, Observation)) as stage:
        sessions = [await stage.open() for _ in range(8)]
        asked = [asyncio.ensure_future(session.reset()) for session in sessions]
        await until(lambda: gate.n_waiting == 8)
        assert (await stage.host.status())["sessions"] == 8  # what serves them answers meanwhile
        await asyncio.to_thread(gate.wait, 20)
        assert [answer["done"] for answer in await asyncio.gather(*asked)] == [False] * 8


async def test_6_26_the_constructor_of_an_environment_with_tools_starts_no_threads() -> None:
    seen: list[tuple[str, bool]] = []

    class Watched(tools_env.load(ors.openenv).Counter):  # type: ignore[misc]
        def __init__(self) -> None:
            before = threading.active_count()
            super().__init__()
            seen.append((threading.current_thread().name, threading.active_count() <= before))

    kind = (Watched, ors.openenv.CallToolAction, ors.openenv.CallToolObservation)
    async with staged(OpenEnvOffering(*kind)) as stage:
        session = await stage.open()
        await session.reset()
    # once to see its tools beforehand, once for the session
    assert [name.rpartition("-")[0] for name, _ in seen] == ["ors-look", "ors-lane"]
    assert all(calm for _, calm in seen)


async def test_6_35_two_that_act_in_one_session_take_turns() -> None:
    class Alone(Least):
        inside = 0

        def step(self, action: Action) -> Any:
            return self._alone()

        def reset(self) -> Any:
            return self._alone()

        def _alone(self) -> Any:
            Alone.inside += 1
            assert Alone.inside == 1, "two at once"
            threading.Event().wait(0.01)
            Alone.inside -= 1
            return Observation()

    async with staged(OpenEnvOffering(Alone, Action, Observation)) as stage:
        session = await stage.open()
        answers = await asyncio.gather(*[session.step() if n % 3 else session.reset() for n in range(12)])
        assert all(isinstance(answer, dict) for answer in answers)


async def test_7_1_sessions_are_isolated() -> None:
    async with staged(offering("columns")) as stage:
        games = [await stage.open() for _ in range(6)]
        ids = {(await game.reset(), await game.state())[1]["episode_id"] for game in games}
        assert len(ids) == 6
        for turn in range(2):
            for number, game in enumerate(games):
                seen = (await game.step(column=number % 3))["observation"]
                assert sum(cell != 0 for row in seen["board"] for cell in row) == turn + 1
                assert seen["board"][turn][number % 3] != 0


async def test_7_37_a_reset_leaves_nothing_of_the_last_episode_behind_and_no_other_session_sees_it() -> None:
    async with staged(offering("echo")) as stage:
        first, second = await stage.open(), await stage.open()
        await first.reset(episode_id="one")
        await second.reset(episode_id="two")
        await first.step(message="x")
        assert (await second.state(), (await first.state())["step_count"]) == (
            {"episode_id": "two", "step_count": 0},
            1,
        )
        await first.reset()
        assert await first.state() == {"episode_id": None, "step_count": 0}


async def test_7_28_a_seed_that_is_taken_makes_the_same_episode() -> None:
    import random

    class Dice(Least):
        def reset(self, seed: int | None = None) -> Any:  # type: ignore[override]
            return Observation(metadata={"roll": random.Random(seed).random()})

    async with staged(OpenEnvOffering(Dice, Action, Observation)) as stage:
        session = await stage.open()
        rolls = [(await session.reset(seed=1234))["observation"]["metadata"]["roll"] for _ in range(6)]
        assert len(set(rolls)) == 1
        assert "notes" not in await session.reset(seed=1)


def test_the_page_names_tests_that_exist() -> None:
    """Each row has a number that no other row of its list has, and names tests that are there, or says why none is."""
    page = (ROOT / "docs" / "openenv-faults.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in page.splitlines()
        if re.match(r"\| [67]\.", line)
    ]
    assert len(rows) > 20 and all(len(row) == 4 for row in rows)
    # what is a fault of both sides is in both lists
    for section in page.split("\n## "):
        numbers = re.findall(r"^\| ([67]\.\d+) ", section, re.MULTILINE)
        assert len(set(numbers)) == len(numbers)
    tests = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", file.read_text(encoding="utf-8"))
    }
    for number, _, _, named in rows:
        names = re.findall(r"`(test_\w+)`", named)
        assert names or named.strip("| ").startswith("none:"), f"{number} names no test and does not say why"
        assert set(names) <= tests, f"{number} names tests that are not there: {set(names) - tests}"
    here = Path(__file__).read_text(encoding="utf-8")
    for name in re.findall(r"def (test_[67]_\w+)\(", here):
        assert f"`{name}`" in page, f"{name} is not on the page"
