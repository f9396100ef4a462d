"""Episodes as the client plays them, on a real server: what is asked, what is told, and what is left behind."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from typing import Any

import pytest

from ors import ImageBlock, TextBlock
from ors.client import (
    ORS,
    AsyncORS,
    AuthenticationError,
    RequestRefused,
    SessionLost,
    SessionTerminatedError,
    ToolCallError,
    ToolFailed,
)
from ors.errors import ClientError
from served import Served, wait_until

from .played import SEEN, Proxy, seen_of


def test_an_episode(url: str) -> None:
    with ORS(url) as client:
        env = client.environment("played")
        assert client.environments.list() == ["played"]
        splits = env.list_splits()
        assert splits == ["train", "exam", "other"]
        assert [split.type for split in splits] == ["train", "test", "validation"]
        assert env.num_tasks("train") == 5
        assert env.get_task("exam", 2).task_spec == {"id": "exam-2", "index": 2}
        assert [task.index for task in env.get_task_range("exam", 1, 3)] == [1, 2]
        with env.session(task=env.list_tasks("train")[3]) as session:
            text, image = session.get_prompt()
            assert (text, image) == (TextBlock(text="  task train-3"), ImageBlock(data="aGk=", mimeType="image/png"))
            assert session.get_prompt() == session.get_prompt()
            assert "add" in [tool.name for tool in session.list_tools()]
            output = session.call_tool("add", {"name": "one", "size": 30_000})
            assert output.blocks[0].text == " é🙂\n" * 30_000 + "one"  # type: ignore[union-attr]
            assert session.call_tool("add", {"name": "two", "reward": None}).reward is None
            assert not session.finished
            assert session.call_tool("finish").finished
            assert session.finished
            assert session.rewards == [1.0, 3.0]
            assert session.rewards.reduce("sum") == 4.0
            with pytest.raises(ToolCallError) as over:
                session.call_tool("add", {"name": "late"})
            assert over.value.kind == "episode_finished"
            sid = session.sid
        assert SEEN["prompt"] == 1
        assert SEEN["setup"] == SEEN["teardown"] == 1
        assert sid


def test_an_episode_is_no_more_requests_than_it_needs(served: Served, url: str) -> None:
    lines: list[tuple[str, str]] = []
    inner = served.application._dispatcher

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        lines.append((scope["method"], scope["path"]))
        await inner(scope, receive, send)

    served.application._dispatcher = noting  # type: ignore[assignment]
    try:
        with ORS(url) as client:
            for index in range(2):
                with client.environment("played").session(split="train", index=index) as session:
                    session.get_prompt()
                    session.call_tool("add", {"name": "x"})
    finally:
        served.application._dispatcher = inner
    episode = [("POST", "/create"), ("GET", "/played/prompt"), ("POST", "/played/call"), ("POST", "/delete")]
    assert lines == [("GET", "/version"), *episode, *episode]


def test_what_goes_wrong_is_told_by_its_kind(url: str) -> None:
    with ORS(url) as client, client.environment("played").session(split="train", index=0) as session:
        for name, given, kind, words in (
            ("refuse", {}, "tool_error", "not like this"),
            ("nothing", {}, "not_found", "nothing"),
            ("add", {"name": 3}, "input_validation", "name"),
        ):
            with pytest.raises(ToolCallError, match=words) as told:
                session.call_tool(name, given)
            assert (told.value.sid, told.value.kind) == (session.sid, kind)
        with pytest.raises(ToolFailed, match="it broke") as broken:
            session.call_tool("crash")
        assert (broken.value.kind, broken.value.sid) == ("tool_failed", session.sid)
        for wrong in ([1], "x", {"x": object()}, {"x": float("nan")}):
            with pytest.raises(ToolCallError):
                session.call_tool("add", wrong)  # type: ignore[arg-type]
        assert session.rewards == []
        assert session.call_tool("add", {"name": "still"}).reward == 1.0


def test_a_session_is_used_once_and_only_while_it_is_open(url: str) -> None:
    with ORS(url) as client:
        session = client.environment("played").session(split="train", index=0)
        with pytest.raises(SessionTerminatedError, match="inside `with`"):
            session.call_tool("finish")
        with session:
            pass
        with pytest.raises(SessionTerminatedError, match="was ended"):
            session.call_tool("finish")
        with pytest.raises(SessionTerminatedError, match="opened once"):
            session.__enter__()
        for wrong in ({}, {"task": {}, "split": "train", "index": 0}, {"split": "train"}):
            with pytest.raises(ValueError, match="either a task, or both"):
                client.environment("played").session(**wrong)  # type: ignore[arg-type]


def test_what_cannot_be_opened_leaves_nothing_behind(served: Served, url: str) -> None:
    with ORS(url) as client:
        before = served.status()["sessions"]
        for given in ({"split": "train", "index": 99}, {"split": "nowhere", "index": 0}):
            with pytest.raises(RequestRefused) as refused:
                client.environment("played").session(**given).__enter__()
            assert refused.value.status == 400
        with pytest.raises(RequestRefused, match="unknown environment"):
            client.environment("elsewhere").session(split="train", index=0).__enter__()
        with client.environment("played").session({"fails": True}) as session, pytest.raises(ClientError) as failed:
            session.get_prompt()
        assert failed.value.kind == "setup_failed"
        assert served.status()["sessions"] == before
    with ORS(url, api_key="wrong") as client, pytest.raises(AuthenticationError):
        client.environments.list()


def test_secrets_arrive_and_are_shown_nowhere(url: str) -> None:
    with ORS(url) as client:
        session = client.environment("played").session(split="train", index=0, secrets={"token": "hush-hush-hush"})
        assert "hush" not in repr(session) + repr(session._inner.__dict__)
        with session:
            assert session.call_tool("secret").blocks[0].text == "token=14"  # type: ignore[union-attr]
            assert "hush" not in repr(session._inner.__dict__)


def test_a_session_that_the_server_ended_is_lost_at_once(served: Served, url: str) -> None:
    async def play() -> None:
        async with AsyncORS(url) as client:
            async with client.environment("played").session(split="train", index=0) as session:
                waiting = asyncio.ensure_future(session.call_tool("slow", {"name": "waits", "wait_s": 60}))
                while not seen_of("waits"):
                    await asyncio.sleep(0.005)
                async with client.environment("played").session(split="train", index=1) as other:
                    await session.endpoint.within("POST", "/delete", headers=session.headers, body=b"")
                    with pytest.raises(ClientError) as ended:
                        await waiting
                    assert ended.value.sid == session.sid
                    began = time.monotonic()
                    with pytest.raises(SessionLost):
                        await session.call_tool("add", {"name": "x"})
                    with pytest.raises(SessionLost):
                        await session.get_prompt()
                    assert time.monotonic() - began < 5
                    assert (await other.call_tool("add", {"name": "fine"})).reward == 1.0

    asyncio.run(play())


def test_idle_sessions_are_kept_alive_and_one_that_is_gone_is_noticed(served: Served, url: str) -> None:
    with ORS(url, ping_interval=0.1) as client:
        with client.environment("played").session(split="train", index=0) as session:
            host_session = served.host._sessions[session.sid]
            touched = host_session.touched
            wait_until(lambda: host_session.touched > touched)
            served.on_loop(lambda: served.host.end(session.sid, host_session.principal, "expired"))
            wait_until(lambda: session._inner.lost is not None)
            with pytest.raises(SessionLost) as lost:
                session.get_prompt()
            assert lost.value.kind == "session_ended"


def test_a_call_goes_on_when_its_connection_is_cut(served: Served, url: str) -> None:
    port = int(url.rsplit(":", 1)[1])
    with Proxy(port) as proxy, ORS(proxy.url) as client:
        with client.environment("played").session(split="train", index=0) as session:
            result: list[Any] = []
            thread = threading.Thread(
                target=lambda: result.append(session.call_tool("slow", {"name": "cut", "wait_s": 1.5}))
            )
            thread.start()
            wait_until(lambda: seen_of("cut") == 1)
            for task in asyncio.all_tasks(proxy._loop):
                if "_guarded" in repr(task):
                    proxy._loop.call_soon_threadsafe(task.cancel)
            thread.join(30)
            assert result[0].reward == 2.0
            assert seen_of("cut") == 1


def test_handles_can_be_pickled(url: str) -> None:
    with ORS(url) as client:
        env = pickle.loads(pickle.dumps(client.environment("played")))
        assert env.num_tasks("train") == 5
        copy = pickle.loads(pickle.dumps(client))
        assert copy.environments.list() == ["played"]
        with env.session(split="train", index=0) as session:
            other = pickle.loads(pickle.dumps(session))
            assert other.call_tool("add", {"name": "elsewhere"}).reward == 1.0
            other.close()
            assert session.call_tool("add", {"name": "here"}).reward == 1.0


def test_clients_written_for_the_existing_package_run(url: str) -> None:
    """Its README, and what its users rely on, as they stand."""
    from ors.client import (
        ORS,
        AsyncEnvironment,
        AsyncSession,
        Provider,
        Session,
        SyncSession,
        Task,
        convert_tool_response,
    )

    client = ORS(base_url=url)
    env = client.environment("played")
    tasks = env.list_tasks(split="train")

    with env.session(task=tasks[0]) as session:
        prompt = session.get_prompt()
        assert prompt[0].text == "  task train-0"

        result = session.call_tool("finish", {})
        assert (result.reward, result.finished) == (3.0, True)
    assert isinstance(tasks[0], Task)
    assert (tasks[0].environment_name, tasks[0].task_spec["id"]) == ("played", "train-0")
    assert client.environments.get("played").name == "played"
    assert client.environments.get(name="played", base_url=url).num_tasks(split="exam") == 5
    assert SyncSession is Session
    assert {tool["name"] for tool in env.list_tools(format="openai")} >= {"add", "finish"}
    assert convert_tool_response is not None
    assert Provider is not None
    client.close()

    async def play() -> None:
        client = AsyncORS(base_url=url)
        env = client.environment("played")
        assert isinstance(env, AsyncEnvironment)
        task = await env.get_task("train", 1)
        async with env.session(task) as session:
            assert isinstance(session, AsyncSession)
            assert (await session.call_tool("add", {"name": "as before"})).reward == 1.0
        tools = await env.list_tools(format="anthropic")
        assert all("input_schema" in tool for tool in tools)

    asyncio.run(play())
