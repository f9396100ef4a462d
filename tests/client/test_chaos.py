"""A tenth of all requests is cut, delayed or refused: every reward arrives once, none is invented, none is lost.

`ORS_CHAOS_EPISODES=10000` plays as many episodes; the default is few enough for every run of the tests.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from ors.client import AsyncORS, Retry
from served import Served, wait_until

from .chaos import WAYS, Gateway
from .played import SEEN, seen_of

EPISODES = int(os.environ.get("ORS_CHAOS_EPISODES", "400"))
CALLS = 3


@pytest.mark.timeout(120 + EPISODES // 10)
def test_every_reward_arrives_once(served: Served, url: str) -> None:
    async def play(session: Any) -> list[float]:
        number = session.task.task_spec["number"]
        prompt = await session.get_prompt()
        assert prompt[0].text == f"  task {number}"
        paid = []
        for call in range(CALLS):
            # no two rewards are the same, so none can take another's place
            output = await session.call_tool("add", {"name": f"{number}-{call}", "reward": number + call / 4})
            assert output.blocks[0].text == f"{number}-{call}"
            paid.append(output.reward)
        paid.append((await session.call_tool("finish")).reward)
        return paid

    async def main(gateway: Gateway) -> list[Any]:
        retry = Retry(attempts=10, first=0.01, most=0.1)
        async with AsyncORS(gateway.url, retry=retry, timeout=120, call_timeout=120) as client:
            env = client.environment("played")
            tasks = [{"id": number, "number": number} for number in range(EPISODES)]
            return await env.gather(play, tasks, concurrency=64)

    with Gateway(int(url.rsplit(":", 1)[1]), 0.1, seed=20) as gateway:
        episodes = asyncio.run(main(gateway))
    for number, episode in enumerate(episodes):
        expected = [*(number + call / 4 for call in range(CALLS)), 3.0]
        assert episode.unwrap() == expected
        assert (list(episode.rewards), episode.finished) == (expected, True)
        assert [seen_of(f"{number}-{call}") for call in range(CALLS)] == [1] * CALLS
    assert set(gateway.did) == {*WAYS, "passed"}
    disturbed = sum(count for way, count in gateway.did.items() if way != "passed")
    assert 0.07 < disturbed / sum(gateway.did.values()) < 0.13
    # one setup, one prompt and one teardown each, and nothing left open
    wait_until(lambda: SEEN["teardown"] == EPISODES)
    assert (SEEN["setup"], SEEN["prompt"]) == (EPISODES, EPISODES)
    assert served.status()["sessions"] == 0
