"""Our client on the servers of ors-sdk and openreward, unchanged and with their quirks, and on ours."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ors import ImageBlock, TextBlock
from ors.client import ORS, AsyncORS, RequestRefused, Retry, SessionLost, ToolCallError, ToolFailed
from ors.errors import ClientError, RequestLost

from .grading import served_probe

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from client.played import Proxy  # noqa: E402

SERVERS = ["ors-sdk", "openreward", "ors-kit"]
ENV = "conformanceprobe"


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with served_probe(request.param, tmp_path_factory.mktemp("client")) as url:
        yield request.param, url


def test_what_is_asked_of_an_environment(server: tuple[str, str]) -> None:
    with ORS(server[1]) as client:
        assert client.environments.list() == [ENV, "conformancecounted"]
        env = client.environment(ENV)
        splits = env.list_splits()
        assert splits == ["train", "validation", "test", "holdout", "hard"]
        assert [split.type for split in splits] == ["train", "validation", "test", "validation", "test"]
        assert env.num_tasks("train") == 12
        assert [task.task_spec["number"] for task in env.list_tasks("train")] == list(range(12))
        assert env.get_task("train", 4).task_spec == {
            "number": 4,
            "split": "train",
            "text": "ä\u20284",
            "deep": {"of": [None, 0.5]},
        }
        assert [task.task_spec["number"] for task in env.get_task_range("train", 3, 6)] == [3, 4, 5]
        assert {"echo", "finish", "big"} <= {tool.name for tool in env.list_tools()}
        with pytest.raises(RequestRefused) as outside:
            env.get_task("train", 99)
        assert outside.value.status in (400, 404, 500)
        counted = client.environment("conformancecounted")
        assert counted.num_tasks("train") == 1_000_000
        assert counted.get_task("train", 1_000).task_spec == {"square": 1_000_000}


def test_an_episode_of_the_second_environment_is_of_the_second(server: tuple[str, str]) -> None:
    with ORS(server[1]) as client, client.environment(ENV).session(split="validation", index=2) as session:
        text, image = session.get_prompt()
        assert (text.text, text.detail) == ("Task 2.", {"level": 1})  # type: ignore[union-attr]
        assert isinstance(image, ImageBlock)
        assert json.loads(said(session.call_tool("task")))["split"] == "validation"
        assert session.call_tool("score", {"value": 0.25}).reward == 0.25
        over = session.call_tool("finish", {"value": 1.0})
        assert (over.reward, over.finished, session.finished) == (1.0, True, True)
        assert session.rewards == [0.25, 1.0]


def test_texts_come_back_byte_for_byte(server: tuple[str, str]) -> None:
    texts = ["", " leading", "\n\n  x", "é🙂\U0010ffff\u2028\u0000", " " * 9_000 + "end", "a\r\nb\rc\nd", "x" * 300_000]
    with ORS(server[1]) as client, client.environment(ENV).session(split="train", index=0) as session:
        for text in texts:
            assert said(session.call_tool("echo", {"text": text})) == text
        big = said(session.call_tool("big", {"lines": 2_000}))
        assert big == "".join(f"{' ' * 50}{line}\n" for line in range(2_000))
        one, image = session.call_tool("image").blocks
        assert (one, type(image)) == (TextBlock(text="one", detail={"level": 1}), ImageBlock)


def test_secrets_arrive(server: tuple[str, str]) -> None:
    given = {"api": "s3cret-ä", "other": "x" * 50}
    with ORS(server[1]) as client:
        with client.environment(ENV).session(split="train", index=0, secrets=given) as session:
            digests = json.loads(said(session.call_tool("secrets")))
    assert {name: digests[name] for name in given} == {
        name: hashlib.sha256(value.encode()).hexdigest() for name, value in given.items()
    }


def test_what_goes_wrong_is_told_and_costs_no_second_run(server: tuple[str, str]) -> None:
    with ORS(server[1]) as client, client.environment(ENV).session(split="train", index=0) as session:
        with pytest.raises(ToolFailed, match="on purpose"):
            session.call_tool("fail", {"text": "on purpose"})
        with pytest.raises(ToolCallError):
            session.call_tool("echo", {"text": 3})
        with pytest.raises(ToolCallError):
            session.call_tool("there is none", {})
        assert said(session.call_tool("count")) == "1"
    with ORS(server[1]) as client:
        session = client.environment(ENV).session(split="train", index=0).__enter__()
        session._inner._env = ENV
        asyncio.run(_delete(server[1], session.sid))
        with pytest.raises(ClientError) as lost:
            session.call_tool("echo", {"text": "x"})
        assert isinstance(lost.value, SessionLost)
        session.close()


async def _delete(url: str, sid: Any) -> None:
    async with AsyncORS(url) as client:
        await client.environments._endpoint.within("POST", "/delete", headers={"X-Session-ID": sid}, body=b"")


def test_many_episodes_at_once(server: tuple[str, str]) -> None:
    async def play(session: Any) -> float:
        await session.get_prompt()
        text = f"{session.sid}"
        assert said(await session.call_tool("echo", {"text": text})) == text
        return float((await session.call_tool("finish", {"value": 0.5})).reward)

    async def main() -> list[Any]:
        async with AsyncORS(server[1]) as client:
            return await client.environment(ENV).gather(play, [("train", n % 12) for n in range(100)], concurrency=32)

    assert [episode.unwrap() for episode in asyncio.run(main())] == [0.5] * 100


@pytest.mark.timeout(180)
def test_a_cut_anywhere_in_a_call_never_runs_it_twice(server: tuple[str, str]) -> None:
    """On our server the reward arrives as well; theirs take no ids of ours, so a loss is told instead of run again."""
    name, url = server
    retry = Retry(attempts=4, first=0.01, most=0.05)
    with Proxy(int(url.rsplit(":", 1)[1])) as proxy, ORS(proxy.url, retry=retry) as client:
        env = client.environment(ENV)
        with env.session(split="train", index=0) as session:
            client.close()
            before = proxy.passed
            session.call_tool("score", {"value": 1.0})
            size = proxy.passed - before
        step = 1 if name == "ors-kit" else 9
        lost = 0
        with env.session(split="train", index=0) as session:
            for number, cut in enumerate(range(1, size, step), 1):
                client.close()
                proxy.cut = cut
                ran = int(said(session.call_tool("count")) if proxy.cut is None else _count(url, session))
                try:
                    assert session.call_tool("score", {"value": 2.0}).reward == 2.0
                except RequestLost:
                    lost += 1
                proxy.cut = None
                after = _count(url, session)
                assert after - ran <= 1, f"cut after {cut} of {size} bytes: {after - ran} runs"
                if name == "ors-kit":
                    assert after - ran == 1
                assert number
        if name == "ors-kit":
            assert lost == 0
        else:
            assert lost > 0


def _count(url: str, session: Any) -> int:
    """How many calls ran, asked beside the proxy."""

    async def ask() -> int:
        async with AsyncORS(url) as client:
            body = json.dumps({"name": "count", "input": {}}).encode()
            headers = {"X-Session-ID": session.sid, "Content-Type": "application/json"}
            answer = await client.environments._endpoint.within("POST", f"/{ENV}/call", headers=headers, body=body)
            line = next(line for line in answer.body.splitlines() if b'"ok":true' in line or b'"ok": true' in line)
            result = json.loads(line.removeprefix(b"data:").strip())
            return int(result["output"]["blocks"][0]["text"])

    return asyncio.run(ask())


def said(output: Any) -> str:
    """The text of an output's first block."""
    return str(output.blocks[0].text)
