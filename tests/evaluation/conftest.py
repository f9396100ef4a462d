"""A server with the environment of these tests, and a way to let agents play on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ors import Server
from ors.client import AsyncORS
from ors.evaluation import Agent, Job, Key, Limits, Result, run

from .environments import Ways

LetPlay = Callable[..., list[Result]]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Server([Ways], shutdown_grace=0).background() as address:
        yield address


@pytest.fixture
def let_play(url: str) -> LetPlay:
    """Let an agent play the tasks of these numbers; returns what came of each, in the order of the numbers."""

    def play(agent: Any, *numbers: int, concurrency: int = 4, limits: Limits | None = None) -> list[Result]:
        results: list[Result] = []
        jobs = [Job(Key("a", "ways", "train", number, 0), seed=number) for number in numbers or (0,)]

        async def main() -> None:
            async with AsyncORS(url) as client:
                agents = {"a": Agent("a", agent)}
                await run(client, agents, jobs, concurrency=concurrency, ended=results.append, limits=limits)

        asyncio.run(main())
        return sorted(results, key=lambda result: result.key)

    return play
