"""OpenEnv environments of every shape, played on a host."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_authoring.play import offering, staged

pytestmark = pytest.mark.anyio


async def test_a_game_is_played_and_reset() -> None:
    async with staged(offering("columns")) as stage:
        game = await stage.open()
        first = await game.reset()
        assert first == {
            "observation": {"metadata": {"turn": 1}, "board": [[0] * 3] * 2, "legal_actions": [0, 1, 2]},
            "reward": 0.0,
            "done": False,
        }
        after = await game.step(column=2)
        assert after["observation"]["board"] == [[0, 0, 1], [0, 0, 0]]
        assert await game.state() == {
            "episode_id": (await game.state())["episode_id"],
            "step_count": 1,
            "board": [[0, 0, 1], [0, 0, 0]],
            "next_player": -1,
        }
        last: Any = None
        for column in (2, 1, 1, 0, 0):
            last = await game.step(column=column)
        assert last["done"] is True and last["reward"] == 1 and type(last["reward"]) is int
        assert (await game.step(column=0)).detail == "Invalid action"
        assert (await game.reset())["observation"] == first["observation"]
