"""The tools of `ors.Environment` classes: which may be called, toolsets, and authors who route calls themselves."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any

import pytest

from ors import (
    ListToolsOutput,
    RunToolError,
    RunToolSuccess,
    ToolError,
    ToolOutput,
    Toolset,
    ToolSpec,
    terminal,
    tool,
)

from .play import Plain, kind, played, said

pytestmark = pytest.mark.anyio


# Tools


async def test_what_is_listed_for_a_session_can_be_called_in_it_and_nothing_else() -> None:
    class Listing(Plain):
        secret = "value"

        @classmethod
        def helper(cls) -> ToolOutput:
            return said("helped")

        @property
        def trap(self) -> Any:
            raise AssertionError("a property was reached by its name")

        def list_task_tools(self) -> Any:
            if self.task_spec["number"] == 0:
                return ListToolsOutput(tools=[])
            return ListToolsOutput(tools=[ToolSpec(name="extra", description="for this task", input_schema=None)])

        @tool(shared=False)
        def extra(self) -> ToolOutput:
            return said("extra")

        @tool(shared=False)
        def other(self) -> ToolOutput:
            return said("other")

        @terminal
        @tool
        def answer(self, message: str) -> ToolOutput:
            return said(message, finished=True)

    async with played(Listing) as p:
        bare, rich = await p.open(index=0), await p.open(index=1)
        for name in ("helper", "trap", "secret", "setup", "teardown", "__init__", "_call_tool", "other", "x" * 10_000):
            for episode in (bare, rich):
                outcome = await episode.call(name)
                assert kind(outcome) == "unknown_tool" and len(outcome.detail) < 300
        assert kind(await bare.call("extra")) == "unknown_tool"
        assert await rich.text("extra") == "extra"
        assert [spec["name"] for spec in await rich.ask("tools")] == ["go", "extra"]
        assert await rich.text("answer", message="bye") == "bye"
        assert kind(await rich.call("go")) == "episode_finished"


async def test_hidden_tools_are_listed_where_the_author_says_nothing_of_tasks() -> None:
    class Quiet(Plain):
        @tool(shared=False)
        def extra(self) -> ToolOutput:
            return said("extra")

    async with played(Quiet) as p:
        episode = await p.open(index=0)
        assert b"extra" not in p.host.offerings()["quiet"].tools
        assert await episode.text("extra") == "extra"
        assert [spec["name"] for spec in await episode.ask("tools")] == ["go", "extra"]


@pytest.mark.parametrize("answer", [None, 5, "tools", [{"name": "x", "other": 1}], [{"description": "nameless"}]])
async def test_task_tools_that_are_none_are_named(answer: Any) -> None:
    class Garbled(Plain):
        def list_task_tools(self) -> Any:
            return answer

        @tool(shared=False)
        def extra(self) -> ToolOutput:
            return said("extra")

    async with played(Garbled) as p:
        episode = await p.open(index=0)
        assert kind(await episode.ask("tools")) == "bad_output"
        assert kind(await episode.call("extra")) == "bad_output"
        assert await episode.text("go") == "done"


async def test_task_tools_are_named_once() -> None:
    class Doubled(Plain):
        def list_task_tools(self) -> Any:
            again = ToolSpec(name="go", description="another", input_schema=None)
            return [again, ToolSpec(name="absent", description="", input_schema=None)]

    async with played(Doubled) as p:
        episode = await p.open(index=0)
        tools = await episode.ask("tools")
        assert [spec["name"] for spec in tools] == ["go", "absent"]
        assert tools[0]["description"] == "Go."
        failed = await episode.call("absent")
        assert failed.detail == "'absent' is listed, but Doubled has no such tool"


async def test_toolsets_are_made_once_for_an_instance() -> None:
    class Counter(Toolset):
        made = 0

        def __init__(self, env: Any) -> None:
            super().__init__(env)
            type(self).made += 1
            self.count = 0

        @tool
        def count_up(self, by: int = 1) -> ToolOutput:
            self.count += by
            return said(f"{self.count} of {self.env.task_spec['number']}")

        @tool
        async def count_later(self) -> ToolOutput:
            return self.count_up()

    class Bare(Toolset):
        def __init__(self) -> None:
            self.env = None

        @tool
        def bare(self) -> ToolOutput:
            return said("bare")

    class Equipped(Plain):
        toolsets = [Counter, Bare]

    async with played(Equipped) as p:
        one, two = await p.open(index=1), await p.open(index=2)
        assert [spec["name"] for spec in await one.ask("tools")] == ["go", "count_later", "count_up", "bare"]
        assert await one.text("count_up", by=2) == "2 of 1"
        assert await one.text("count_later") == "3 of 1"
        assert await two.text("count_up") == "1 of 2"
        assert await one.text("bare") == "bare"
        assert Counter.made == 2


# Authors who route calls themselves


async def test_a_call_tool_of_the_authors_own() -> None:
    class Routed(Plain):
        @classmethod
        def list_tools(cls) -> ListToolsOutput:
            schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
            return ListToolsOutput(
                tools=[
                    ToolSpec(name="remote", description="", input_schema=schema),
                    ToolSpec(name="form", description="", input_schema=None),
                ]
            )

        async def _call_tool(self, name: str, input: Any) -> Any:
            if name == "form":
                return said("an output")
            if input["x"] == 0:
                return RunToolError(error="zero", reason="tool_error")
            if input["x"] == 1:
                return RunToolError(error="no such thing", reason="not_found")
            if input["x"] == 2:
                raise ToolError("on purpose")
            if input["x"] == 3:
                return "garbage"
            if input["x"] == 4:
                raise asyncio.CancelledError
            return RunToolSuccess(output=said(f"x = {input['x']}", reward=1.0, finished=True))

    async with played(Routed) as p:
        episode = await p.open(index=0)
        assert await episode.text("form") == "an output"
        wrong = await episode.call("remote", x="text")
        assert wrong.detail == "Tool input validation error: x: does not fit its schema (type)"
        assert kind(await episode.call("form", y=1)) == "invalid_input"
        kinds = [kind(await episode.call("remote", x=x)) for x in range(5)]
        assert kinds == ["tool_error", "unknown_tool", "tool_error", "bad_output", "tool_failed"]
        assert kind(await episode.call("go")) == "unknown_tool"
        assert await episode.text("remote", x=9) == "x = 9"
        assert kind(await episode.call("form")) == "episode_finished"


@pytest.mark.parametrize("later", [False, True])
async def test_a_call_tool_keeps_the_marks_of_its_tools(later: bool) -> None:
    inside, most = set[str](), list[int]()

    class Logged(Plain):
        @tool(timeout=0.1)
        async def slow(self) -> ToolOutput:
            await asyncio.sleep(30)
            return said()

        @tool
        async def one(self) -> ToolOutput:
            inside.add("one")
            while "two" not in inside:
                await asyncio.sleep(0.002)
            return said("one")

        @tool
        async def two(self) -> ToolOutput:
            inside.add("two")
            return said("two")

    if later:

        class Env(Logged):
            async def _call_tool(self, name: str, input: Any) -> Any:
                return await super()._call_tool(name, input)
    else:

        class Env(Logged):  # type: ignore[no-redef]
            def _call_tool(self, name: str, input: Any) -> Any:
                most.append(threading.get_ident())
                return super()._call_tool(name, input)

    async with played(Env) as p:
        episode = await p.open(index=0)
        assert kind(await episode.call("slow")) == "tool_timeout"
        if later:
            assert await asyncio.gather(episode.text("one"), episode.text("two")) == ["one", "two"]
        else:
            assert await episode.text("two") == "two"
            assert threading.get_ident() not in most, "a `def` ran on the server's event loop"


async def test_a_list_of_tools_may_be_written_anew() -> None:
    class Rewritten(Plain):
        @classmethod
        @functools.cache
        def list_tools(cls) -> ListToolsOutput:
            listed = super().list_tools()
            return ListToolsOutput(tools=[spec.model_copy(update={"description": "new"}) for spec in listed.tools])

    async with played(Rewritten) as p:
        episode = await p.open(index=0)
        assert [spec["description"] for spec in await episode.ask("tools")] == ["new"]
        assert await episode.text("go") == "done"
