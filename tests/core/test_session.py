"""Sessions: calls that run once, in order, until one says that the episode is over."""

from __future__ import annotations

import asyncio
import contextvars
import random
import threading
import time
from typing import Any

import pytest

from ors.core.failures import failure
from ors.core.ports import Op, ToolOutcome

from .play import Door, Stage, kind, pass_time, said, theatre, until

pytestmark = pytest.mark.anyio


CONCURRENT = {"concurrent": True}
EXCLUSIVE = {"exclusive": True}


# Exactly once


async def test_a_repeated_call_joins_the_first_and_later_gets_its_result() -> None:
    door, stage = Door(), Stage()

    def slow(input: Any) -> ToolOutcome:
        door.wait()
        return said(input, reward=1.0)

    stage.tools["slow"] = slow
    async with theatre(stage) as t:
        first = t.call("slow", {"x": [1, 2]}, "mine")
        await door.is_reached()
        second = t.call("slow", {"x": [1, 2]}, "mine")
        third = t.call("slow", call_id="mine", mode="attach")
        door.opened.set()
        assert await first == await second == await third == said({"x": [1, 2]}, reward=1.0)
        assert await t.call("slow", {"x": [1, 2]}, "mine") == said({"x": [1, 2]}, reward=1.0)
        assert stage.events.count("slow") == 1
        tally = t.session.tally
        assert (tally.calls, tally.failed, tally.reward) == (1, 0, 1.0), "a repeat was counted"


async def test_an_id_belongs_to_one_tool_and_one_input() -> None:
    door = Door()
    stage = Stage(a=lambda input: door.wait() or said(), b=lambda input: said())
    async with theatre(stage) as t:
        running = t.call("a", {"x": 1, "y": 2}, "mine")
        await door.is_reached()
        for name, input in [("b", {"x": 1, "y": 2}), ("a", {"x": True, "y": 2}), ("a", {"x": 1.0, "y": 2}), ("a", {})]:
            assert kind(await t.call(name, input, "mine")) == "call_conflict"
        same = t.call("a", {"y": 2, "x": 1}, "mine")
        door.opened.set()
        assert await running == await same == said()
        assert kind(await t.call("a", {"x": 2}, "mine")) == "call_conflict"
        assert stage.events.count("a") == 1


async def test_a_result_that_is_no_longer_kept_is_never_made_again() -> None:
    async with theatre(Stage(a=lambda input: said())) as t:
        assert await t.call("a", {}, "mine") == said()
        made = t.call("a", call_id="servers", mode="run")
        assert await made == said()
        assert await t.call("a", call_id="servers", mode="attach") == said()
        pass_time(t.store, t.clock, 59)
        assert await t.call("a", {}, "mine") == said()
        pass_time(t.store, t.clock, 2)
        forgotten = await t.call("a", {}, "mine")
        assert (forgotten.kind, forgotten.ran) == ("call_forgotten", "yes")
        assert kind(await t.call("a", {"x": 1}, "mine")) == "call_conflict"
        assert kind(await t.call("a", call_id="servers", mode="attach")) == "unknown_call"
        assert t.stage.events.count("a") == 2
        assert (t.store.memory, t.store.disk) == (0, 0)


async def test_attaching_never_starts_a_call() -> None:
    async with theatre(Stage(a=lambda input: said())) as t:
        assert kind(await t.call("a", call_id="never", mode="attach")) == "unknown_call"
        assert "a" not in t.stage.events


async def test_leaving_a_call_does_not_end_it() -> None:
    door = Door()
    async with theatre(Stage(a=lambda input: door.wait() or said("kept"))) as t:
        asked = t.call("a", {}, "mine")
        await door.is_reached()
        asked.cancel()
        assert t.session.busy == 1
        door.opened.set()
        await until(lambda: t.session.busy == 0)
        assert await t.call("a", {}, "mine") == said("kept")
        assert t.stage.events.count("a") == 1


async def test_a_call_that_was_refused_may_be_asked_again() -> None:
    door = Door()
    async with theatre(Stage(a=lambda input: door.wait() or said()), max_calls=1) as t:
        running = t.call("a")
        refused = await t.call("a", {}, "mine")
        assert (refused.kind, refused.retryable, refused.retry_after) == ("too_many_calls", True, 2.0)
        assert refused.ran == "no"
        door.opened.set()
        await running
        assert await t.call("a", {}, "mine") == said()


async def test_a_full_store_refuses_new_calls_and_answers_old_ones() -> None:
    stage = Stage(big=lambda input: said("x" * 1000))
    async with theatre(stage, keep={"max_memory": 1200}) as t:
        assert await t.call("big", {}, "mine") == said("x" * 1000)
        assert kind(await t.call("big", {}, "other")) == "results_full"
        assert await t.call("big", {}, "mine") == said("x" * 1000)
        pass_time(t.store, t.clock, 61)
        assert await t.call("big", {}, "other") == said("x" * 1000)


# The end of an episode


async def test_after_the_end_nothing_is_called_and_nothing_paid() -> None:
    stage = Stage(submit=lambda input: said(reward=1.0, finished=True), look=lambda input: said(reward=0.5))
    async with theatre(stage) as t:
        assert (await t.call("submit")).finished
        for name in ("submit", "look"):
            assert kind(await t.call(name)) == "episode_finished"
        assert stage.events == ["setup", "submit"]
        assert t.session.finished
        assert t.session.tally.reward == 1.0


@pytest.mark.parametrize("marks", [{}, EXCLUSIVE])
async def test_calls_that_wait_when_the_episode_ends_never_run(marks: dict[str, Any]) -> None:
    door, stage = Door(), Stage()

    def submit(input: Any) -> ToolOutcome:
        door.wait()
        return said(reward=1.0, finished=True)

    async def look(input: Any) -> ToolOutcome:
        return said(reward=5.0)

    stage.tools |= {"submit": (submit, marks), "look": (look, EXCLUSIVE), "sync": lambda input: said(reward=5.0)}
    async with theatre(stage) as t:
        first = t.call("submit")
        await door.is_reached()
        waiting = [t.call(name) for name in ("submit", "sync", "look", "submit", "look", "sync") * 100]
        door.opened.set()
        assert (await first).finished
        assert {kind(outcome) for outcome in await asyncio.gather(*waiting)} == {"episode_finished"}
        assert stage.events == ["setup", "submit"]
        assert t.session.tally.reward == 1.0


async def test_a_call_that_overlaps_with_the_last_one_is_paid_nothing() -> None:
    door, stage = Door(), Stage(submit=(lambda input: said(reward=1.0, finished=True), CONCURRENT))

    async def look(input: Any) -> ToolOutcome:
        await door.wait_async()
        return said(reward=5.0)

    stage.tools["look"] = (look, CONCURRENT)
    async with theatre(stage) as t:
        overlapping = t.call("look", {}, "mine")
        await door.is_reached()
        assert (await t.call("submit")).finished
        door.opened.set()
        outcome = await overlapping
        assert (outcome.kind, outcome.ran) == ("episode_finished", "yes")
        assert await t.call("look", {}, "mine") == outcome, "the replay says something else"
        assert t.session.tally.reward == 1.0


# Limits and the rest


async def test_a_limit_of_the_server_holds_where_the_tool_has_none() -> None:
    door = Door()

    async def slow(input: Any) -> ToolOutcome:
        await door.wait_async()
        return said("slow")

    async with theatre(Stage(slow=slow, patient=(slow, {"timeout": 20.0})), call_s=0.1) as t:
        patient = t.call("patient")
        assert kind(await t.call("slow")) == "tool_timeout"
        door.opened.set()
        assert await patient == said("slow")


async def test_context_variables_of_the_setup_are_seen_by_the_calls_of_their_session_only() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    stage = Stage(read=lambda input: said(variable.get("nothing")), write=lambda input: variable.set("w") and said())
    names = iter(["first", "second"])

    async def setup() -> None:
        variable.set(next(names))

    stage.setup = setup
    async with theatre(stage) as t:
        other = t.open()
        other.begin(t.session._episode.start)
        assert await t.call("read") == said("first")
        assert await other.perform(Op("call", "x", "read", {})) == said("second")
        assert (await t.call("write")) == said()
        assert await t.call("read") == said("first")
        assert variable.get("nothing") == "nothing"
        other.stop(failure("session_ended", "Session deleted"))
        await other.close("deleted")


async def test_a_running_call_is_activity_while_somebody_waits_for_it() -> None:
    door = Door()
    async with theatre(Stage(slow=lambda input: door.wait() or said())) as t:
        asked = t.call("slow")
        await door.is_reached()
        t.clock.now += 1000
        assert t.session.active(t.clock.now, 5000)
        assert not t.session.active(t.clock.now, 500), "the ceiling does not hold"
        asked.cancel()
        before = t.session.touched
        assert not t.session.active(t.clock.now, 5000)
        assert t.session.touched == t.clock.now > before, "the moment the last one left was no activity"
        door.opened.set()


async def test_whoever_waits_for_the_last_call_is_told() -> None:
    door = Door()
    async with theatre(Stage(slow=lambda input: door.wait() or said())) as t:
        asked = t.call("slow")
        t.limits.quiet = asyncio.get_running_loop().create_future()
        await door.is_reached()
        assert not t.limits.quiet.done()
        door.opened.set()
        await asked
        assert t.limits.quiet.done()


# Order, on real threads and a real loop


async def test_what_may_not_overlap_never_does_and_keeps_its_order() -> None:
    marks: dict[str, dict[str, Any]] = {
        "free": CONCURRENT,
        "alone": EXCLUSIVE,
        "one": {},
        "two": {},
        "sync": {},
        "calc": {},
    }
    stage, dice = Stage(), random.Random(11)
    inside: list[tuple[str, int]] = []
    started: list[tuple[str, int]] = []
    lock = threading.Lock()

    def conflict(a: str, b: str) -> bool:
        if "alone" in (a, b):
            return True
        if "free" in (a, b):
            return False
        return a == b or {a, b} == {"sync", "calc"}

    def enter(name: str, number: int) -> None:
        with lock:
            clash = [other for other in inside if conflict(other[0], name)]
            assert not clash, f"{name} {number} overlaps with {clash}"
            inside.append((name, number))
            started.append((name, number))

    def leave(name: str, number: int) -> None:
        with lock:
            inside.remove((name, number))

    def asynchronous(name: str) -> Any:
        async def tool(input: Any) -> ToolOutcome:
            enter(name, input["n"])
            for _ in range(input["pauses"]):
                await asyncio.sleep(0)
            leave(name, input["n"])
            return said(input["n"])

        return tool

    def synchronous(name: str) -> Any:
        def tool(input: Any) -> ToolOutcome:
            enter(name, input["n"])
            time.sleep(input["pauses"] / 2000)
            leave(name, input["n"])
            return said(input["n"])

        return tool

    for name in marks:
        make = synchronous if name in ("sync", "calc") else asynchronous
        stage.tools[name] = (make(name), marks[name])
    async with theatre(stage) as t:
        names = [dice.choice([*marks, "one", "two", "sync", "free"]) for _ in range(400)]
        calls = [t.call(name, {"n": number, "pauses": dice.randrange(4)}) for number, name in enumerate(names)]
        assert await asyncio.gather(*calls) == [said(number) for number in range(400)]
    places = {number: place for place, (_, number) in enumerate(started)}
    for later, name in enumerate(names):
        for earlier in range(max(0, later - 40), later):
            if conflict(names[earlier], name):
                assert places[earlier] < places[later], f"{name} {later} came before {names[earlier]} {earlier}"
