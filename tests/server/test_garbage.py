"""A server at work leaves nothing behind that only the garbage collector can free: its pauses would be the tail."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ors import Environment, TextBlock, ToolError, ToolOutput, tool
from served import Served


class Busy(Environment):
    def get_prompt(self) -> Any:
        return "Say something."

    @classmethod
    def list_splits(cls) -> Any:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"n": n} for n in range(10)]

    @tool
    async def say(self, words: str) -> ToolOutput:
        return ToolOutput(blocks=[TextBlock(text=words)], reward=1.0)

    @tool
    def write(self, words: str) -> ToolOutput:
        return ToolOutput(blocks=[TextBlock(text=words)])

    @tool
    async def fail(self) -> ToolOutput:
        raise ToolError("no")


@pytest.fixture
def uncollected() -> Iterator[list[Any]]:
    """What the collector alone could free, from here on."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


QUESTIONS: list[tuple[str, str, Any]] = [
    ("POST", "/call", {"name": "say", "input": {"words": "hello"}}),
    ("POST", "/call", {"name": "write", "input": {"words": "hello"}}),
    ("POST", "/call", {"name": "fail", "input": {}}),
    ("POST", "/call", {"name": "say", "input": {}}),
    ("POST", "/task", {"split": "train", "index": 3}),
    ("POST", "/task_range", {"split": "train", "start": 0, "stop": 5}),
    ("POST", "/num_tasks", {"split": "train"}),
    ("GET", "/prompt", None),
    ("GET", "/tools", None),
    ("GET", "/splits", None),
]


ASKED = 20


def _is_ours(item: Any) -> bool:
    """The client of this test is in the same process, and leaves something of its own."""
    return type(item).__module__.startswith("ors") or type(item).__name__ in ("coroutine", "Task", "Future")


@pytest.mark.parametrize(("method", "path", "body"), QUESTIONS, ids=lambda value: str(value)[:40])
def test_nothing_is_left_to_the_collector(method: str, path: str, body: Any, uncollected: list[Any]) -> None:
    served = Served([Busy])
    try:
        headers = {"x-session-id": "one", "accept": "text/event-stream"}
        start = {"split": "train", "index": 0}
        served.client.post("/create", json=start, headers=headers).raise_for_status()

        def ask() -> None:
            served.client.request(method, f"/busy{path}", json=body, headers=headers).raise_for_status()

        for _ in range(3):
            ask()
        gc.collect()
        uncollected.clear()
        for _ in range(ASKED):
            ask()
        gc.collect()
        ours = Counter(type(item).__qualname__ for item in uncollected if _is_ours(item))
        # a server that an earlier test has stopped may go only now; what comes with each request is meant here
        assert {kind: count for kind, count in ours.items() if count >= ASKED} == {}
    finally:
        served.stop()
