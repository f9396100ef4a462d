"""Environments of steps that have tools of their own, played by calling these."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import pytest

import ors.openenv
from ors.adapters.openenv_environment import OpenEnvOffering
from ors.core.failures import Failure
from ors.core.ports import Document, Op, ToolOutcome
from ors.openenv import (
    CallToolAction,
    CallToolObservation,
    Environment,
    ListToolsAction,
    ListToolsObservation,
    Observation,
    State,
    Tool,
)

from .play import ME, Episodes, staged
from .tools_env import load

pytestmark = pytest.mark.anyio
ENVS = load(ors.openenv)
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()


async def call(session: Episodes, name: str, /, **input: Any) -> Any:
    call.number += 1  # type: ignore[attr-defined]
    op = Op("call", call_id=f"c{call.number}", name=name, input=input)  # type: ignore[attr-defined]
    outcome = await session.host.perform(session.sid, ME, op)
    return json.loads(outcome.body) if isinstance(outcome, ToolOutcome) else outcome


call.number = 0  # type: ignore[attr-defined]


async def listed(session: Episodes) -> list[str]:
    outcome = await session.host.perform(session.sid, ME, Op("tools"))
    assert isinstance(outcome, Document), outcome
    return [tool["name"] for tool in json.loads(outcome.body)]


async def test_its_own_tools_are_the_tools() -> None:
    offering = OpenEnvOffering(*ENVS.kinds["counter"])
    names = ["add", "fail", "wait", "table"]
    assert [tool["name"] for tool in json.loads(offering.spec.tools)] == names
    async with staged(offering) as stage:
        session = await stage.open(kind="tools")
        assert await listed(session) == names
        added = await call(session, "add", by=2)
        assert added == {
            "blocks": [{"text": "2", "detail": None, "type": "text"}],
            "metadata": None,
            "reward": None,
            "finished": False,
        }
        assert (await call(session, "add", by=3))["blocks"][0]["text"] == "5"
        assert json.loads((await call(session, "table"))["blocks"][0]["text"]) == {"rows": [1, 2], "name": "t"}


async def test_what_goes_wrong_with_a_tool_is_told_in_the_words_of_the_standard() -> None:
    async with staged(OpenEnvOffering(*ENVS.kinds["counter"])) as stage:
        session = await stage.open(kind="tools")
        wrong = await call(session, "add", by="many")
        assert (wrong.kind, wrong.ran) == ("invalid_input", "no") and "by" in wrong.detail
        assert (await call(session, "none")).kind == "unknown_tool"
        assert (await call(session, "step")).kind == "unknown_tool"
        failed = await call(session, "fail", why="broken")
        assert (
            failed.reason == "tool_error"
            and failed.detail.startswith("Tool 'fail' failed: ")
            and "broken" in failed.detail
        )


async def test_where_it_takes_other_actions_too_they_are_the_tool_step() -> None:
    async with staged(OpenEnvOffering(*ENVS.kinds["own_action"])) as stage:
        session = await stage.open(kind="tools")
        assert await listed(session) == ["add", "fail", "wait", "table", "step"]
        stepped = await call(session, "step", text="hello")
        assert stepped["reward"] == -1.0 and "no tool: Say" in stepped["blocks"][0]["text"]
        assert (await call(session, "step", txt="hello")).kind == "invalid_input"
        assert (await call(session, "add", by=4))["blocks"][0]["text"] == "4"


class Imported(Environment[Any, Any, Any]):
    """What has tools without a FastMCP server, as imported environments do: it lists and calls them in `step`."""

    results: list[Any] = []

    def reset(self, seed: int | None = None) -> Any:
        return Observation(metadata={"hidden": True})

    def step(self, action: Any) -> Any:
        if isinstance(action, ListToolsAction):
            return ListToolsObservation(tools=[Tool(name="submit", description="", input_schema={"type": "object"})])
        assert isinstance(action, CallToolAction)
        result, reward, done = self.results.pop(0)
        return CallToolObservation(
            tool_name=action.tool_name, result=result, reward=reward, done=done, metadata={"n": 1}
        )

    @property
    def state(self) -> State:
        return State()


async def test_results_of_every_form_become_blocks_with_reward_and_end() -> None:
    text, image = {"type": "text", "text": "t"}, {"type": "image", "data": PICTURE, "mimeType": "image/png"}
    Imported.results = [
        ({"content": [text, image, {"type": "audio", "data": "x"}], "is_error": False}, 0.5, False),
        ({"content": []}, True, False),
        ({"content": [text], "is_error": True}, None, False),
        ({"plain": PICTURE}, 1, False),
        ("words", None, False),
        ({"x": float("nan")}, None, False),
        ("over", 1, True),
    ]
    async with staged(OpenEnvOffering(Imported, CallToolAction, CallToolObservation)) as stage:
        session = await stage.open(kind="tools")
        assert await listed(session) == ["submit"]
        mixed = await call(session, "submit")
        assert [block["type"] for block in mixed["blocks"]] == ["text", "image", "text"]
        assert (mixed["reward"], mixed["metadata"], mixed["blocks"][1]["data"]) == (0.5, {"n": 1}, PICTURE)
        assert (await call(session, "submit"))["blocks"] == [{"text": "", "detail": None, "type": "text"}]
        failed = await call(session, "submit")
        assert isinstance(failed, Failure) and failed.detail == "Tool 'submit' failed: t"
        assert [block["type"] for block in (await call(session, "submit"))["blocks"]] == ["text", "image"]
        assert (await call(session, "submit"))["blocks"][0]["text"] == "words"
        assert (await call(session, "submit")).kind == "bad_output"
        assert (await call(session, "submit"))["finished"] is True
        assert (await call(session, "submit")).kind == "episode_finished"


async def test_what_cannot_be_made_beforehand_has_the_tools_of_its_sessions(caplog: pytest.LogCaptureFixture) -> None:
    class Later(ENVS.Counter):  # type: ignore[misc]
        ready = False

        def __init__(self) -> None:
            if not Later.ready:
                raise OSError("no data yet")
            super().__init__()

    with caplog.at_level(logging.WARNING, "ors.server"):
        offering = OpenEnvOffering(Later, CallToolAction, CallToolObservation)
    assert "no data yet" in caplog.text and offering.spec.tools == b"[]"
    Later.ready = True
    for made in (offering, OpenEnvOffering(*ENVS.kinds["counter"], list_tools=False)):
        async with staged(made) as stage:
            session = await stage.open(kind="tools")
            assert "add" in await listed(session)
            assert (await call(session, "add", by=1))["blocks"][0]["text"] == "1"
