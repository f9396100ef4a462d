"""Many episodes at once: as many as were asked for, in order or as they end, and failures are data."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from ors.client import ORS, AsyncORS, Episode
from served import Served, wait_until

from .played import SEEN, seen_of


def test_in_order_with_failures_as_data(served: Served, url: str) -> None:
    async def play(session: Any) -> str:
        prompt = await session.get_prompt()
        if session.task is None and "train-3" in prompt[0].text:
            raise ValueError("this agent gives up")
        await session.call_tool("add", {"name": prompt[0].text})
        await session.call_tool("finish")
        return prompt[0].text  # type: ignore[no-any-return]

    async def main() -> list[Episode[str]]:
        async with AsyncORS(url) as client:
            env = client.environment("played")
            tasks: list[Any] = [("train", index) for index in range(7)]
            return await env.gather(play, tasks, concurrency=3)

    before = served.status()["sessions"]
    episodes = asyncio.run(main())
    assert [episode.number for episode in episodes] == list(range(7))
    assert [episode.ok for episode in episodes] == [True, True, True, False, True, False, False]
    assert episodes[0].unwrap() == "  task train-0"
    assert episodes[0].rewards == [1.0, 3.0]
    assert episodes[0].finished
    assert isinstance(episodes[3].error, ValueError)
    assert episodes[5].error is not None
    with pytest.raises(ValueError, match="gives up"):
        episodes[3].unwrap()
    assert all(episode.seconds > 0 for episode in episodes)
    assert served.status()["sessions"] == before


def test_no_more_at_once_than_was_asked_for(url: str) -> None:
    running, most = 0, 0
    five = asyncio.Barrier(5)

    async def play(session: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await five.wait()  # four at once would wait for ever
        await session.call_tool("add", {"name": "x"})
        running -= 1

    async def main() -> None:
        async with AsyncORS(url) as client:
            await client.environment("played").gather(play, [{"id": number} for number in range(40)], concurrency=5)
            with pytest.raises(ValueError, match="at least 1"):
                await client.environment("played").gather(play, [], concurrency=0)

    asyncio.run(main())
    assert most == 5


def test_as_they_end_from_tasks_without_an_end(served: Served, url: str) -> None:
    def endless() -> Any:
        number = 0
        while True:
            yield {"id": number}
            number += 1

    async def play(session: Any) -> int:
        await session.call_tool("add", {"name": f"n{session.task.task_spec['id']}"})
        return int(session.task.task_spec["id"])

    async def main() -> list[int]:
        found = []
        async with AsyncORS(url) as client:
            episodes = client.environment("played").as_ended(play, endless(), concurrency=4)
            async for episode in episodes:
                found.append(episode.unwrap())
                if len(found) == 30:
                    break
            await episodes.aclose()  # type: ignore[attr-defined]
        return found

    before = served.status()["sessions"]
    found = asyncio.run(main())
    assert len(set(found)) == 30
    wait_until(lambda: SEEN["teardown"] == SEEN["setup"])
    assert served.status()["sessions"] == before


def test_synchronous_code_plays_in_threads(url: str) -> None:
    threads = set()

    def play(session: Any) -> float:
        threads.add(threading.get_ident())
        return float(session.call_tool("add", {"name": "sync"}).reward)

    with ORS(url) as client:
        episodes = client.environment("played").gather(play, [("train", n % 5) for n in range(24)], concurrency=6)
        assert [episode.unwrap() for episode in episodes] == [1.0] * 24
        assert [episode.number for episode in episodes] == list(range(24))
        for episode in client.environment("played").as_ended(play, [("train", 0)] * 5, concurrency=2):
            assert episode.ok
            break
    assert 1 < len(threads) <= 6 + 2
    assert seen_of("sync") >= 25
