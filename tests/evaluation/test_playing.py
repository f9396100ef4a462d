"""What becomes of an episode, whatever its agent does: a result, or a failure with a kind, never a made-up reward."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import time
from typing import Any

import pytest

from ors import TextBlock
from ors.errors import ClientError, ToolCallError, ToolFailed
from ors.evaluation import Agent, AgentError, AgentSession, Limits, SyncAgentSession

from .conftest import LetPlay


def both(agent: Any) -> list[Any]:
    """A plain function that plays, and an `async def` that plays the same calls."""

    async def asynchronous(session: AgentSession) -> None:
        loop = asyncio.get_running_loop()

        class Plain:
            """The session without `await`, for code that runs in a thread."""

            def __getattr__(self, name: str) -> Any:
                value = getattr(session, name)
                if not inspect.iscoroutinefunction(value):
                    return value
                return lambda *words: asyncio.run_coroutine_threadsafe(value(*words), loop).result()

        await asyncio.to_thread(agent, Plain())

    return [agent, asynchronous]


def plays_to_the_end(session: Any) -> None:
    assert session.get_prompt() == [TextBlock(text=f"task {session.index}")]
    assert "end" in [tool.name for tool in session.list_tools()]
    assert session.terminal_tool() is None
    assert (session.env, session.split, session.repeat, session.finished) == ("ways", "train", 0, False)
    session.call_tool("pay", {"amount": 0.25})
    session.call_tool("end", {"amount": 0.5})
    assert session.finished
    assert session.rewards == [0.25, 0.5]
    session.notes["tokens"] = 7


@pytest.mark.parametrize("agent", both(plays_to_the_end))
def test_an_episode_to_its_end(let_play: LetPlay, agent: Any) -> None:
    began = time.time()
    result, other = let_play(agent, 3, 4)
    assert result.failure is None
    assert (result.rewards, result.finished, result.notes) == ([0.25, 0.5], True, {"tokens": 7})
    assert [result.reward(how) for how in ("sum", "last", "max")] == [0.75, 0.5, 0.5]
    assert len(result.call_seconds) == 2
    assert 0 < max(result.call_seconds) <= result.seconds < 30
    assert began - 1 < result.started < time.time() + 1
    assert result.session
    assert result.session != other.session
    assert (result.key.task, result.seed, other.seed) == (3, 3, 4)


def test_the_task_is_not_told(let_play: LetPlay) -> None:
    seen: list[str] = []

    async def agent(session: AgentSession) -> None:
        seen.extend(name for name in dir(session) if not name.startswith("_"))
        await session.call_tool("end")

    let_play(agent)
    assert "task" not in seen
    assert "call_tool" in seen


def gives_up(session: Any) -> None:
    session.call_tool("pay", {"amount": 1})


def never_paid(session: Any) -> None:
    session.call_tool("end")


def refused_and_goes_on(session: Any) -> None:
    for name in ("refuse", "no_such_tool"):
        with pytest.raises(ToolCallError):
            session.call_tool(name)
    session.call_tool("end", {"amount": 1})


@pytest.mark.parametrize(
    ("agent", "reward", "finished", "refused"),
    [(gives_up, 1.0, False, 0), (never_paid, None, True, 0), (refused_and_goes_on, 1.0, True, 2)],
)
def test_what_is_no_failure(let_play: LetPlay, agent: Any, reward: Any, finished: bool, refused: int) -> None:
    (result,) = let_play(agent)
    assert result.failure is None
    assert (result.reward("sum"), result.finished, result.refused) == (reward, finished, refused)


def raises(session: Any) -> None:
    raise KeyError("lost")


def leaves(session: Any) -> None:
    raise SystemExit(3)


async def leaves_too(session: Any) -> None:
    raise SystemExit(3)


@pytest.mark.parametrize("agent", [leaves, leaves_too])
def test_an_agent_that_wants_the_process_to_end_ends_its_episode(let_play: LetPlay, agent: Any) -> None:
    (result,) = let_play(agent)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.detail[:13]) == ("agent_raised", "SystemExit: 3")


def does_not_catch_a_refusal(session: Any) -> None:
    session.call_tool("pay", {"amount": 1})
    session.call_tool("refuse")


def meets_a_broken_tool(session: Any) -> None:
    session.call_tool("pay", {"amount": 1})
    session.call_tool("explode")


def hides_a_broken_tool(session: Any) -> None:
    try:
        session.call_tool("explode")
    except Exception:
        pass


def wraps_a_broken_tool(session: Any) -> None:
    try:
        session.call_tool("explode")
    except ToolFailed as exc:
        raise RuntimeError("the harness gives up") from exc


def breaks_after_a_broken_tool(session: Any) -> None:
    hides_a_broken_tool(session)
    session.call_tool("pay", {"amount": 1})
    [].pop()


@pytest.mark.parametrize(
    ("agent", "kind", "words"),
    [
        (raises, "agent_raised", r"KeyError: 'lost' \(test_playing\.py, line \d+\)"),
        (does_not_catch_a_refusal, "call_refused", "did not catch: ToolCallError: Tool 'refuse' failed: not like this"),
        (meets_a_broken_tool, "tool_failed", "out of order"),
        (hides_a_broken_tool, "tool_failed", "out of order"),
        (wraps_a_broken_tool, "tool_failed", "out of order"),
    ],
)
@pytest.mark.parametrize("number", [0, 1], ids=["plain", "async"])
def test_failures_have_a_kind_and_no_reward(let_play: LetPlay, agent: Any, kind: str, words: str, number: int) -> None:
    (result,) = let_play(both(agent)[number])
    assert result.failure is not None
    assert result.failure.kind == kind
    assert re.search(words, result.failure.detail), result.failure.detail
    assert result.reward("sum") is None


def test_a_bug_of_the_agent_is_its_own_also_after_a_broken_tool(let_play: LetPlay) -> None:
    (result,) = let_play(breaks_after_a_broken_tool)
    assert result.failure is not None
    assert result.failure.kind == "agent_raised"
    assert "IndexError" in result.failure.detail


def test_setup_that_fails_is_the_environment_s_failure(let_play: LetPlay) -> None:
    good, bad = let_play(never_paid, 12, 13)
    assert good.failure is None
    assert bad.failure is not None
    assert bad.failure.kind == "setup_failed"


def test_what_an_agent_does_after_the_end_takes_nothing_back(let_play: LetPlay) -> None:
    def agent(session: SyncAgentSession) -> None:
        session.call_tool("end", {"amount": 1})
        session.call_tool("pay", {"amount": 5})

    (result,) = let_play(agent)
    assert result.failure is None
    assert (result.rewards, result.finished) == ([1.0], True)
    assert result.warning is not None
    assert "ToolCallError" in result.warning


@pytest.mark.parametrize("number", [0, 1], ids=["plain", "async"])
def test_an_agent_that_never_stops_calling_is_stopped(let_play: LetPlay, number: int) -> None:
    def agent(session: Any) -> None:
        while True:
            try:
                session.call_tool("pay", {"amount": 1})
            except Exception:
                continue

    (result,) = let_play(both(agent)[number], limits=Limits(calls=5))
    assert result.failure is None
    assert (result.stopped, result.rewards, result.finished) == ("max_calls", [1.0] * 5, False)


def test_an_agent_that_plays_in_tasks_of_its_own_is_stopped_too(let_play: LetPlay) -> None:
    async def agent(session: AgentSession) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(session.call_tool("pay", {"amount": 1}))

    (result,) = let_play(agent, limits=Limits(calls=5))
    assert result.failure is None
    assert result.stopped == "max_calls"
    assert len(result.rewards) <= 5


@pytest.mark.parametrize("number", [0, 1], ids=["plain", "async"])
def test_a_call_that_never_ends_fails_its_episode_and_no_other(let_play: LetPlay, number: int) -> None:
    def agent(session: Any) -> None:
        session.call_tool("wait" if session.index == 1 else "end")

    good, bad = let_play(both(agent)[number], 0, 1, limits=Limits(seconds=0.7))
    assert good.failure is None
    assert bad.failure is not None
    assert (bad.failure.kind, bad.failure.detail) == ("episode_timeout", "not over after 0.7 s")


def test_a_thread_that_nobody_waits_for_learns_of_it(let_play: LetPlay) -> None:
    go_on, told = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def agent(session: SyncAgentSession) -> None:
        go_on.wait(30)
        try:
            session.call_tool("end")
        except ClientError as exc:
            raised.append(exc)
        told.set()

    (result,) = let_play(agent, limits=Limits(seconds=0.2))
    go_on.set()
    assert told.wait(30)
    assert result.failure is not None
    assert result.failure.kind == "episode_timeout"
    assert [getattr(exc, "kind", None) for exc in raised] == ["closed"]


def test_only_so_many_at_once_and_all_of_them(let_play: LetPlay) -> None:
    running, most = 0, 0

    async def agent(session: AgentSession) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await session.call_tool("pay", {"amount": 1})
        await session.call_tool("end")
        running -= 1

    results = let_play(agent, *range(12), concurrency=3)
    assert [result.key.task for result in results] == list(range(12))
    assert [result.failure for result in results] == [None] * 12
    assert 1 < most <= 3


def test_what_the_caller_raises_ends_the_run(url: str) -> None:
    from ors.client import AsyncORS
    from ors.evaluation import Job, Key, run

    def full(result: object) -> None:
        raise OSError("the disk is full")

    async def main() -> None:
        async with AsyncORS(url) as client:
            jobs = [Job(Key("a", "ways", "train", number, 0), 0) for number in range(20)]
            await run(client, {"a": Agent("a", never_paid)}, jobs, concurrency=4, ended=full)

    with pytest.raises(OSError, match="the disk is full"):
        asyncio.run(main())


def generator(session: Any) -> Any:
    yield


class NeedsWords:
    def __init__(self, words: str) -> None:
        pass


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "is of type int"),
        (generator, "is a generator"),
        (lambda: None, "is called with a session and nothing else"),
        (lambda a, b: None, "is called with a session and nothing else"),
        (NeedsWords, "is made without arguments"),
    ],
)
def test_what_is_no_agent(value: Any, words: str) -> None:
    with pytest.raises(AgentError, match=words):
        Agent("it", value)


class Harness:
    """What is shared by all episodes lives in an instance."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1

    async def __call__(self, session: AgentSession) -> None:
        await session.call_tool("end", {"amount": 1})


def test_a_class_is_made_once(let_play: LetPlay) -> None:
    Harness.made = 0
    results = let_play(Harness, 0, 1, 2)
    assert [result.rewards for result in results] == [[1.0]] * 3
    assert Harness.made == 1


def test_a_plain_function_that_returns_a_coroutine_is_told_so(let_play: LetPlay) -> None:
    async def really(session: Any) -> None: ...

    (result,) = let_play(lambda session: really(session))
    assert result.failure is not None
    assert "write it as `async def`" in result.failure.detail
