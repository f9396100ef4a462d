"""The life of a session: its setup, its prompt, calls that are cancelled, its end, and tools that hang."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from typing import Any

import pytest

from ors.core.failures import failure
from ors.core.ports import Document, ToolOutcome, Work
from ors.core.session import Phase
from ors.runtime import RuntimeOptions

from .play import Door, Stage, kind, said, theatre, until

pytestmark = pytest.mark.anyio


CONCURRENT = {"concurrent": True}
EXCLUSIVE = {"exclusive": True}


# Setup


async def test_what_is_asked_during_setup_waits_for_it() -> None:
    door, stage = Door(), Stage(a=lambda input: said("a"))
    stage.setup = door.wait
    async with theatre(stage, begun=False) as t:
        t.begin()
        call, prompt, tools = t.call("a"), t.ask("prompt"), t.ask("tools")
        await door.is_reached()
        assert stage.events == ["setup"]
        assert t.session.phase is Phase.STARTING
        door.opened.set()
        assert await call == said("a")
        assert await prompt == Document(b'"prompt"')
        assert await tools == Document(b'["a"]', "stage")
        assert stage.events == ["setup", "a", "prompt", "tools"]


async def test_a_setup_that_fails_is_torn_down_and_told_to_everybody(caplog: pytest.LogCaptureFixture) -> None:
    door, stage = Door(), Stage(a=lambda input: said())

    def setup() -> Any:
        door.wait()
        return failure("setup_failed", "no database", ran="yes")

    stage.setup = setup
    async with theatre(stage, begun=False) as t:
        t.begin()
        early = [t.call("a", {}, "mine"), t.ask("prompt")]
        await door.is_reached()
        door.opened.set()
        late = lambda: [t.call("a"), t.ask("tools"), t.call("a", call_id="mine", mode="attach")]  # noqa: E731
        for asked in early:
            assert (await asked).detail == "no database"
        for asked in late():
            assert kind(await asked) == "setup_failed"
        await until(lambda: stage.events[-1] == "teardown")
        assert stage.events == ["setup", "close: setup_failed", "teardown"]
        assert "setup of session" in caplog.text
        await t.end()
        assert stage.events[-1] == "teardown" and stage.events.count("teardown") == 1


async def test_a_setup_over_its_time_is_cut_and_torn_down() -> None:
    door, stage = Door(), Stage()

    async def setup() -> None:
        await door.wait_async()

    stage.setup = setup
    async with theatre(stage, begun=False, setup_s=0.1) as t:
        t.begin()
        assert kind(await t.ask("prompt")) == "setup_timeout"
        await until(lambda: "teardown" in stage.events)


async def test_deleting_during_setup_cuts_it_and_tears_down() -> None:
    door, stage = Door(), Stage(a=lambda input: said())

    async def setup() -> None:
        await door.wait_async()
        stage.events.append("setup went on")

    stage.setup = setup
    async with theatre(stage, begun=False) as t:
        t.begin()
        waiting = [t.call("a", {}, "mine"), t.ask("prompt")]
        await door.is_reached()
        await t.end()
        for asked in waiting:
            assert kind(await asked) == "session_ended"
        assert stage.events == ["setup", "close: deleted", "teardown"]
        assert kind(await t.call("a", {}, "mine")) == "session_ended"


async def test_deleting_before_setup_has_begun_runs_none() -> None:
    stage = Stage()
    async with theatre(stage, begun=False) as t:
        t.begin()
        await t.end()
        assert "setup" not in stage.events


# The prompt


async def test_the_prompt_is_computed_once() -> None:
    door, stage = Door(), Stage()
    stage.prompt = lambda: door.wait() or len(stage.events)
    async with theatre(stage) as t:
        asked = [t.ask("prompt") for _ in range(3)]
        await door.is_reached()
        asked[0].cancel()
        door.opened.set()
        assert await asked[1] == await asked[2] == Document(b"2")
        assert await t.ask("prompt") == Document(b"2")
        assert stage.events.count("prompt") == 1


async def test_a_prompt_that_failed_may_be_asked_for_again() -> None:
    stage = Stage()
    answers: list[Any] = [failure("prompt_failed", "not yet"), "ready"]
    stage.prompt = lambda: answers.pop(0)
    async with theatre(stage) as t:
        assert kind(await t.ask("prompt")) == "prompt_failed"
        assert await t.ask("prompt") == Document(b'"ready"')


# Cancelling one call


async def test_a_running_call_can_be_cancelled() -> None:
    door, stage = Door(), Stage(next=lambda input: said("next"))

    async def slow(input: Any) -> None:
        await door.wait_async()
        stage.events.append("went on")

    stage.tools["slow"] = slow
    async with theatre(stage) as t:
        running = t.call("slow", {}, "mine")
        await door.is_reached()
        assert t.session.cancel("mine") == Document(b'{"cancelled":true}')
        assert kind(await running) == "call_cancelled"
        assert t.session.cancel("mine") == Document(b'{"cancelled":false}')
        assert kind(await t.call("slow", {}, "mine")) == "call_cancelled"
        assert await t.call("next") == said("next")
        assert kind(t.session.cancel("never")) == "unknown_call"
        assert "went on" not in stage.events


async def test_calls_that_wait_can_be_cancelled() -> None:
    """In the chain of a tool, before an exclusive tool, behind one, and during setup."""
    door, setup, stage = Door(), Door(), Stage()

    async def slow(input: Any) -> ToolOutcome:
        await door.wait_async()
        return said("slow")

    async def other(input: Any) -> ToolOutcome:
        return said("other")

    stage.tools |= {"slow": slow, "other": other, "last": (other, EXCLUSIVE)}
    stage.setup = setup.wait
    async with theatre(stage, RuntimeOptions(grace_s=0.05), begun=False) as t:
        t.begin()
        early = t.call("slow", {}, "early")
        await setup.is_reached()
        assert t.session.cancel("early") == Document(b'{"cancelled":true}')
        assert kind(await early) == "call_cancelled"
        setup.opened.set()
        first = t.call("slow")
        await door.is_reached()
        chained = t.call("slow", {}, "chained")
        exclusive = t.call("last", {}, "exclusive")
        behind = t.call("other", {}, "behind")
        for name, asked in [("chained", chained), ("exclusive", exclusive)]:
            assert t.session.cancel(name) == Document(b'{"cancelled":true}')
            assert kind(await asked) == "call_cancelled"
        # nothing holds it back any more
        assert await behind == said("other")
        # and a call that was cancelled while it waited is no hung one, however long it goes on waiting
        await asyncio.sleep(0.2)
        assert t.hung == []
        door.opened.set()
        assert await first == said("slow")
        assert stage.events.count("slow") == 1
        assert await t.call("last") == said("other")


# Deleting


async def test_deleting_answers_everybody_and_tears_down_when_nothing_runs_any_more() -> None:
    door, stage = Door(), Stage()

    async def slow(input: Any) -> None:
        try:
            await door.wait_async()
        finally:
            await asyncio.sleep(0.05)
            stage.events.append("slow left")

    stage.tools |= {"slow": slow, "last": (lambda input: said(), EXCLUSIVE)}
    async with theatre(stage) as t:
        asked = [t.call("slow"), t.call("slow"), t.call("last"), t.ask("prompt")]
        await door.is_reached()
        ending = asyncio.ensure_future(t.end())
        for one in asked:
            assert kind(await one) == "session_ended"
        await ending
        assert stage.events == ["setup", "slow", "slow left", "close: deleted", "teardown"]
        assert (t.store.memory, t.store.disk) == (0, 0)


async def test_ending_twice_tears_down_once() -> None:
    stage = Stage()
    async with theatre(stage) as t:
        await asyncio.gather(t.end(), t.end())
        await t.end()
        assert stage.events.count("teardown") == 1


async def test_a_teardown_that_fails_or_takes_too_long_is_logged_and_over(caplog: pytest.LogCaptureFixture) -> None:
    door = Door()
    for teardown, words in [(lambda: 1 / 0, "ZeroDivisionError"), (door.wait_async, "took longer than its limit")]:
        stage = Stage()
        stage.teardown = teardown
        async with theatre(stage, teardown_s=0.1) as t:
            await t.end()
        assert words in caplog.text


async def test_a_teardown_may_be_a_script() -> None:
    stage = Stage()
    async with theatre(stage) as t:

        def close(why: str) -> Generator[Work, Any, Any]:
            for step in ("first", "second"):
                yield Work(lambda step=step: stage.events.append(step), label=step)
            return Document(b"{}")

        t.session._episode.close = close
        await t.end()
        assert stage.events == ["setup", "first", "second"]


# Tools that hang


async def test_a_session_whose_tool_hangs_is_lost_and_nothing_more_runs_in_it() -> None:
    stage = Stage(next=lambda input: said())
    began, let_go = threading.Event(), threading.Event()

    def hang(input: Any) -> None:
        began.set()
        while not let_go.is_set():
            try:
                let_go.wait(0.01)
            except BaseException:
                pass

    stage.tools |= {"hang": (hang, {"timeout": 0.05}), "last": (lambda input: said(), EXCLUSIVE)}
    stage.affinity = "session"
    async with theatre(stage, RuntimeOptions(grace_s=0.1)) as t:
        hung = t.call("hang")
        waiting = [t.call("next"), t.call("last"), t.call("next"), t.ask("prompt")]
        assert kind(await hung) == "tool_timeout"
        for asked in waiting:
            assert kind(await asked) == "tool_hung"
        assert t.runtime.status()["zombies"] == ["hang"]
        await t.session.close("hung")
        assert stage.events == ["setup", "hang", "close: hung", "teardown"]
        let_go.set()
        await until(lambda: not t.runtime.zombies)


# Scripts and plans


async def test_a_script_holds_its_turn_and_may_end_itself() -> None:
    stage = Stage(a=lambda input: said("a"))

    def plan(input: Any) -> Generator[Work, Any, Any]:
        first = yield Work(lambda: 1, label="one")
        second = yield Work(lambda: first + 1, label="two")
        return said(second)

    stage.plans["script"] = plan
    async with theatre(stage) as t:
        before, script, after = t.call("a"), t.call("script"), t.call("a")
        assert await asyncio.gather(before, script, after) == [said("a"), said(2), said("a")]


async def test_a_script_that_is_cut_goes_no_further() -> None:
    door, stage, seen = Door(), Stage(a=lambda input: said("a")), list[str]()

    def plan(input: Any) -> Generator[Work, Any, Any]:
        try:
            yield Work(door.wait_async, label="wait", is_async=True)
            seen.append("went on")
        finally:
            seen.append("closed")

    stage.plans["script"] = plan
    async with theatre(stage) as t:
        script, after = t.call("script", {}, "mine"), t.call("a")
        await door.is_reached()
        t.session.cancel("mine")
        assert kind(await script) == "call_cancelled"
        assert await after == said("a")
        assert seen == ["closed"]


async def test_our_own_fault_is_an_answer_and_not_the_end(caplog: pytest.LogCaptureFixture) -> None:
    def broken(input: Any) -> Any:
        raise LookupError("ours")

    def broken_script(input: Any) -> Generator[Work, Any, Any]:
        yield Work(lambda: None, label="one")
        raise LookupError("ours")

    stage = Stage(a=lambda input: said("a"))
    stage.plans |= {"plan": broken, "script": broken_script}
    async with theatre(stage) as t:
        for name in ("plan", "script"):
            outcome = await t.call(name)
            assert (outcome.kind, outcome.detail) == ("internal", "the server failed: LookupError")
            assert await t.call("a") == said("a")
        assert "LookupError: ours" in caplog.text
        assert kind(await t.ask("terminal")) == "not_supported"
        assert kind(await t.ask("step")) == "not_supported"
