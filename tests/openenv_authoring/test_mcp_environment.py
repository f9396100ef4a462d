"""Environments with the tools of a FastMCP server."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import ors.openenv
from ors.adapters.openenv_environment import OpenEnvOffering
from ors.openenv import CallToolAction, ListToolsAction, MCPEnvironment, Observation, State

from .play import staged
from .tools_env import load

pytestmark = pytest.mark.anyio
ENVS = load(ors.openenv)


def offered(kind: str, **options: Any) -> OpenEnvOffering:
    return OpenEnvOffering(*ENVS.kinds[kind], **options)


async def test_tools_are_listed_and_called_by_steps() -> None:
    async with staged(offered("counter")) as stage:
        session = await stage.open()
        listed = (await session.step(type="list_tools"))["observation"]["tools"]  # before any reset
        assert [tool["name"] for tool in listed] == ["add", "fail", "wait", "table"]
        assert listed[0]["description"] == "Add to the count."
        assert listed[0]["input_schema"]["required"] == ["by"]
        await session.reset(episode_id="e")
        first = await session.step(tool_name="add", arguments={"by": 2})
        assert list(first["observation"]) == ["metadata", "tool_name", "result", "error"]
        result = first["observation"]["result"]
        assert list(result) == ["content", "structured_content", "meta", "data", "is_error"]
        assert (result["content"][0]["text"], result["data"], result["is_error"]) == ("2", 2, False)
        again = await session.step(type="call_tool", tool_name="add", arguments={"by": 3, "twice": True})
        assert again["observation"]["result"]["data"] == 8
        assert await session.state() == {"episode_id": "e", "step_count": 2}


async def test_what_goes_wrong_with_a_tool_is_observed() -> None:
    async with staged(offered("counter")) as stage:
        session = await stage.open()
        await session.reset()
        kinds = {}
        for name, arguments in (
            ("none", {}),
            ("add", {"by": "x"}),
            ("fail", {"why": "broken"}),
            ("wait", {"seconds": 9}),
        ):
            limit = 0.2 if name == "wait" else None
            seen = await session.step(limit, tool_name=name, arguments=arguments)
            assert seen["reward"] is None and seen["observation"]["result"] is None
            kinds[name] = seen["observation"]["error"]["error_type"]
        assert kinds["none"] == "tool_not_found" and kinds["fail"] == "execution_error" and kinds["wait"] == "timeout"
        assert (await session.step(tool_name="add", arguments={"by": 1}))["observation"]["result"]["data"] == 1


async def test_a_tool_answers_at_once_and_its_connection_is_kept() -> None:
    async with staged(offered("counter")) as stage:
        session = await stage.open()
        await session.reset()
        began = time.monotonic()
        for _ in range(20):
            await session.step(tool_name="add", arguments={"by": 1})
        assert time.monotonic() - began < 5
        assert (await session.step(tool_name="add", arguments={"by": 1}))["observation"]["result"]["data"] == 21


async def test_whose_actions_are_its_own_may_have_its_tools_called_too() -> None:
    async with staged(offered("own_action")) as stage:
        session = await stage.open()
        await session.reset()
        said = await session.step(text="hello")
        assert said["observation"]["text"] == "no tool: Say" and said["reward"] == -1.0
        called = await session.step(type="call_tool", tool_name="add", arguments={"by": 4})
        assert called["observation"]["result"]["data"] == 4
        assert (await session.step(txt="hello")).kind == "invalid_input"


async def test_a_model_of_calls_of_its_own_decides() -> None:
    async with staged(offered("quoted")) as stage:
        session = await stage.open()
        await session.reset()
        called = await session.step(type="call_tool", tool_name="add", arguments='{"by": 5}')
        assert called["observation"]["result"]["data"] == 5


async def test_actions_for_tools_mean_nothing_to_what_has_none() -> None:
    from ors.openenv import Action, Environment

    class Word(Action):
        type: str

    class Plain(Environment[Any, Any, Any]):
        def reset(self) -> Any:
            return Observation()

        def step(self, action: Word) -> Any:
            return Observation(metadata={"type": action.type})

        @property
        def state(self) -> Any:
            return State()

    async with staged(OpenEnvOffering(Plain, Word, Observation)) as stage:
        session = await stage.open()
        await session.reset()
        assert (await session.step(type="list_tools"))["observation"]["metadata"] == {"type": "list_tools"}
        assert (await session.step(type="call_tool", tool_name="x")).kind == "invalid_input"


class Modal(ENVS.Counter):
    """Its tools depend on the mode of its server."""

    def __init__(self) -> None:
        super().__init__()

        @self.tool(mode="production")
        def look(at: list[int], closely: bool = False) -> str:
            """Look, as in production."""
            return f"production {at} {closely}"

        @self.tool(mode="simulation")  # type: ignore[no-redef]
        def look(at: list[int]) -> str:  # noqa: F811
            """Look, as in simulation."""
            time.sleep(0.3 if at == [0] else 0)
            return f"simulation {at}"

        @self.tool()
        def both() -> str:
            return "both"

        @self.tool(mode="production")
        def only() -> str:
            return "only"


@pytest.mark.parametrize("mode", ["simulation", "production"])
async def test_tools_of_a_mode_are_there_in_that_mode(mode: Any) -> None:
    kind = (Modal, CallToolAction, ors.openenv.CallToolObservation)
    async with staged(OpenEnvOffering(*kind, mode=mode)) as stage:
        session = await stage.open()
        listed = {tool["name"]: tool for tool in (await session.step(type="list_tools"))["observation"]["tools"]}
        assert ("only" in listed) is (mode == "production") and "both" in listed and "add" in listed
        assert listed["look"]["description"] == f"Look, as in {mode}."
        assert listed["look"]["input_schema"]["properties"]["at"] == {"type": "array", "items": {"type": "integer"}}
        looked = await session.step(tool_name="look", arguments={"at": [1]})
        assert looked["observation"]["result"]["data"].startswith(f"{mode} [1]")
        only = (await session.step(tool_name="only"))["observation"]
        assert (only["error"] is None) is (mode == "production")
        if mode == "simulation":
            assert only["error"]["error_type"] == "tool_not_found" and "simulation" in only["error"]["message"]
            late = (await session.step(0.05, tool_name="look", arguments={"at": [0]}))["observation"]
            assert late["error"]["error_type"] == "timeout"  # these have a time limit too


def test_it_is_played_without_a_server() -> None:
    env = ENVS.Counter()
    assert [tool.name for tool in env.step(ListToolsAction()).tools][0] == "add"
    assert env.step(CallToolAction(tool_name="add", arguments={"by": 2})).result.data == 2
    assert env.get_callables()["add"](3) == 5
    assert env.execute_code("result = add(1) + add(by=1)").metadata == {"result": 13}
    assert "division" in env.execute_code("1 / 0").metadata["error"]
    assert env.execute_code("1 +").metadata["error"].startswith("Syntax error")
    env.close()
    assert env.step(ListToolsAction()).metadata["error_type"] == "list_tools_failed"


async def test_it_is_played_without_a_server_where_a_loop_runs() -> None:
    env = ENVS.Counter()
    assert (await env.step_async(CallToolAction(tool_name="add", arguments={"by": 2}))).result.data == 2
    assert env.step(CallToolAction(tool_name="add", arguments={"by": 2})).result.data == 4
    assert (await env.step_async(ENVS.Say(text="x"))).text == "no tool: Say"


def test_names_of_what_trainers_do_are_no_names_of_tools() -> None:
    from fastmcp import FastMCP

    class Reserved(MCPEnvironment):
        def __init__(self) -> None:
            server = FastMCP("reserved")

            @server.tool
            def reset() -> str:
                return ""

            super().__init__(server)

        def reset(self, **_: Any) -> Any: ...
        def _step_impl(self, action: Any, timeout_s: Any = None, **_: Any) -> Any: ...

        @property
        def state(self) -> Any: ...

    with pytest.raises(ValueError, match="reserved names reset"):
        Reserved()
    with pytest.raises(ValueError, match="reserved names state"):

        @ENVS.Counter().tool(mode="production")
        def state() -> str:
            return ""

    with pytest.raises(ValueError, match="Invalid mode"):
        ENVS.Counter().tool(mode="training")


async def test_sessions_do_not_share_their_tools() -> None:
    async with staged(offered("counter")) as stage:
        sessions = [await stage.open() for _ in range(8)]
        await asyncio.gather(*[session.reset() for session in sessions])
        for count in range(1, 4):
            seen = await asyncio.gather(*[session.step(tool_name="add", arguments={"by": 1}) for session in sessions])
            assert [one["observation"]["result"]["data"] for one in seen] == [count] * 8
        for session in sessions:
            await session.end()
