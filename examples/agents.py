"""Agents for `ors run`: what is shown here with functions is what a language model's harness does.

An agent is a function that is given a session of one episode and plays it. A plain function runs in a thread; an
`async def` one is run with all others on one event loop.
"""

from __future__ import annotations

import re
from typing import Any

import reasoning_gym
from ors.errors import ToolCallError


def guess(session: Any) -> None:
    """The naive agent: it hands in the last word or number of the question."""
    question = session.get_prompt()[0].text
    session.call_tool("submit", {"answer": re.findall(r"[\w.]*\w", question)[-1]})


async def knows(session: Any) -> None:
    """The agent that knows: it makes the item again from the task's split and index, as whoever has the package can."""
    item = reasoning_gym.items(session.env, session.split)[session.index]
    question = (await session.get_prompt())[0].text
    if question != item["question"]:
        raise ValueError("the prompt is not the task's own")
    await session.call_tool("submit", {"answer": item["answer"]})


async def press_at_random(session: Any) -> None:
    """Play `lights_out.py` without a plan: an episode of many calls, each with a reward of its own."""
    while not session.finished:
        cell = {"row": session.random.randrange(5), "column": session.random.randrange(5)}
        try:
            await session.call_tool("press", cell)
        except ToolCallError as refused:
            # what a model would be told; nothing was paid, and the episode goes on
            session.notes["refused"] = refused.detail
