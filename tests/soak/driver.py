"""Clients of every manner: those that behave, those that are cut off, that leave, that cancel, that never come back.

Each kind of episode checks what it is told; what it did not expect is kept in `surprises`, by kind.
"""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

__all__ = ["Driver"]

LARGE = "large " * 60_000


class Surprise(Exception):
    """An answer that was not expected."""


def expect(condition: Any, *what: Any) -> None:
    if not condition:
        raise Surprise(" ".join(str(part)[:300] for part in what))


class Driver:
    """Plays episodes against a server."""

    KINDS: dict[str, int] = {
        "whole": 46,
        "abandoned": 8,
        "cut_and_fetched": 9,
        "cut_and_gone": 7,
        "client_cancelled": 7,
        "call_cancelled": 4,
        "setup_failed": 6,
        "setup_deleted": 3,
        "over_time": 2,
        "hung": 2,
        "half_a_body": 2,
        "large": 2,
        "deleted_in_a_call": 2,
    }
    BLOCKED_EVERY = 400

    def __init__(self, url: str, *, seed: int = 1, at_once: int = 48) -> None:
        self.url = url
        self.host, port = url.removeprefix("http://").split(":")
        self.port = int(port)
        self.dice = random.Random(seed)
        self.at_once = at_once
        self.played: Counter[str] = Counter()
        self.surprises: Counter[str] = Counter()
        self.http: aiohttp.ClientSession

    async def play(self, episodes: int) -> None:
        """Play so many episodes, some at once; no connection is left afterwards."""
        kinds = self.dice.choices(list(self.KINDS), weights=list(self.KINDS.values()), k=episodes)
        for at in range(self.BLOCKED_EVERY // 2, episodes, self.BLOCKED_EVERY):
            kinds[at] = "loop_blocked"
        queue = iter(kinds)
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(self.url, connector=connector, timeout=timeout) as self.http:
            await asyncio.gather(*(self._work(queue) for _ in range(self.at_once)))

    async def _work(self, queue: Any) -> None:
        for kind in queue:
            episode: Callable[[str], Awaitable[None]] = getattr(self, f"_{kind}")
            try:
                await episode(uuid.uuid4().hex)
                self.played[kind] += 1
            except (Surprise, aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError) as exc:
                self.surprises[f"{kind}: {type(exc).__name__}: {exc}"] += 1

    # What is asked

    async def _ask(self, method: str, path: str, sid: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        async with self.http.request(method, path, json=body, headers={"X-Session-ID": sid, **headers}) as answer:
            text = await answer.text()
            if answer.content_type == "text/event-stream":
                return answer.status, _result(text)
            return answer.status, json.loads(text)

    async def _create(self, sid: str, env: str = "worker", **task: Any) -> None:
        body = {"env_name": env, "task_spec": task} if task else {"env_name": env, "split": "train", "index": 0}
        status, answer = await self._ask("POST", "/create", sid, body)
        expect(status == 200 and answer == {"sid": sid}, "create", status, answer)

    async def _call(self, sid: str, name: str, call_id: str | None = None, **input: Any) -> Any:
        body = {"name": name, "input": input} | ({"task_id": call_id} if call_id else {})
        status, result = await self._ask("POST", "/call", sid, body)
        expect(status == 200, "call", status, result)
        return result

    async def _text(self, sid: str, name: str, call_id: str | None = None, **input: Any) -> str:
        result = await self._call(sid, name, call_id, **input)
        expect(isinstance(result, dict) and result.get("ok"), name, result)
        return str(result["output"]["blocks"][0]["text"])

    async def _delete(self, sid: str) -> None:
        status, answer = await self._ask("POST", "/delete", sid)
        expect(status == 200, "delete", status, answer)

    async def _send_and_break(self, sid: str, body: bytes, *, announce: int = 0, after: bytes | None = None) -> None:
        """Send a call on a connection of its own and reset the connection, at once or when something has come back."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        head = (
            f"POST /worker/call HTTP/1.1\r\nHost: {self.host}\r\nX-Session-ID: {sid}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {announce or len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        if after is not None:
            await asyncio.wait_for(reader.readuntil(after), 30)
        writer.transport.abort()

    # Episodes

    async def _whole(self, sid: str) -> None:
        await self._create(sid)
        status, prompt = await self._ask("GET", "/prompt", sid)
        expect(status == 200 and prompt[0]["text"] == "Task 0.", "prompt", prompt)
        status, tools = await self._ask("GET", "/task_tools", sid)
        expect(status == 200 and len(tools["tools"]) == 8, "tools", tools)
        seen, thought = await asyncio.gather(self._text(sid, "look"), self._text(sid, "think", words="abc"))
        expect((seen, thought) == ("seen", "cba"), seen, thought)
        result = await self._call(sid, "fail")
        expect(result == "SystemExit: on purpose", result)
        expect(await self._text(sid, "submit", answer="a") == "right", "submit")
        refused = await self._call(sid, "look")
        expect(refused["ok"] is False and refused["reason"] == "episode_finished", refused)
        await self._delete(sid)

    async def _abandoned(self, sid: str) -> None:
        await self._create(sid)
        await self._text(sid, "think", words="gone")

    async def _cut_and_fetched(self, sid: str) -> None:
        await self._create(sid)
        name, call_id = self.dice.choice(["wait", "block"]), uuid.uuid4().hex
        seconds = self.dice.choice([0.0, 0.03, 0.15])
        body = json.dumps({"name": name, "input": {"seconds": seconds}, "task_id": call_id}).encode()
        after = b"event: task_id" if self.dice.random() < 0.5 else None
        for _ in range(self.dice.randrange(1, 3)):
            await self._send_and_break(sid, body, after=after)
        text = await self._text(sid, name, call_id, seconds=seconds)
        expect(text == "ran 1 times", text)
        await self._delete(sid)

    async def _cut_and_gone(self, sid: str) -> None:
        await self._create(sid)
        body = json.dumps({"name": "wait", "input": {"seconds": 0.2}}).encode()
        await self._send_and_break(sid, body, after=b"event: task_id" if self.dice.random() < 0.5 else None)

    async def _client_cancelled(self, sid: str) -> None:
        await self._create(sid)
        calling = asyncio.ensure_future(self._call(sid, self.dice.choice(["wait", "block"]), seconds=0.3))
        await asyncio.sleep(self.dice.random() * 0.1)
        calling.cancel()
        await asyncio.wait([calling])
        if self.dice.random() < 0.7:
            await self._delete(sid)

    async def _call_cancelled(self, sid: str) -> None:
        await self._create(sid)
        call_id = uuid.uuid4().hex
        calling = asyncio.ensure_future(self._call(sid, "wait", call_id, seconds=30.0))
        for _ in range(200):
            status, answer = await self._ask("POST", "/cancel", sid, **{"X-Call-ID": call_id})
            if status == 200:
                break
            await asyncio.sleep(0.02)
        expect(answer == {"cancelled": True}, "cancel", answer)
        result = await calling
        expect(isinstance(result, str) and "was cancelled" in result, result)
        expect(await self._text(sid, "look") == "seen", "after a cancelled call")
        await self._delete(sid)

    async def _setup_failed(self, sid: str) -> None:
        where = self.dice.choice(["constructor", "setup"])
        await self._create(sid, fail=where)
        status, answer = await self._ask("GET", "/prompt", sid)
        expect(status == 500 and answer["kind"] == "setup_failed", status, answer)
        if self.dice.random() < 0.5:
            await self._delete(sid)

    async def _setup_deleted(self, sid: str) -> None:
        await self._create(sid, setup_s=5)
        asking = asyncio.ensure_future(self._ask("GET", "/prompt", sid))
        await asyncio.sleep(self.dice.random() * 0.05)
        await self._delete(sid)
        status, answer = await asking
        expect(status == 410, status, answer)

    async def _over_time(self, sid: str) -> None:
        await self._create(sid)
        result = await self._call(sid, "too_long")
        expect(isinstance(result, str) and "took longer than its limit" in result, result)
        expect(await self._text(sid, "look") == "seen", "after a call over its time")
        await self._delete(sid)

    async def _hung(self, sid: str) -> None:
        await self._create(sid)
        hanging = asyncio.ensure_future(self._call(sid, "hang", seconds=2.0))
        await asyncio.sleep(0.02)
        behind = asyncio.ensure_future(self._ask("POST", "/call", sid, {"name": "think", "input": {"words": "x"}}))
        result = await hanging
        expect(isinstance(result, str) and "took longer than its limit" in result, result)
        _, lost = await behind
        # on a slow machine it may have come first
        expect("did not stop when it was cut" in str(lost) or "'text': 'x'" in str(lost), lost)

    async def _half_a_body(self, sid: str) -> None:
        await self._create(sid)
        await self._send_and_break(sid, b'{"name": "look", "inp', announce=500)
        expect(await self._text(sid, "look") == "seen", "after half a body")
        await self._delete(sid)

    async def _large(self, sid: str) -> None:
        await self._create(sid)
        call_id = uuid.uuid4().hex
        first = await self._text(sid, "large", call_id)
        again = await self._text(sid, "large", call_id)
        expect(first == again == LARGE, len(first), len(again))
        await self._delete(sid)

    async def _deleted_in_a_call(self, sid: str) -> None:
        await self._create(sid)
        names = ["wait", "block", "wait"]
        calls = [asyncio.ensure_future(self._ask_call(sid, name, 0.4)) for name in names]
        await asyncio.sleep(self.dice.random() * 0.1)
        await self._delete(sid)
        for status, result in await asyncio.gather(*calls):
            expect(status == 410 or "Session deleted" in str(result), status, result)

    async def _ask_call(self, sid: str, name: str, seconds: float) -> tuple[int, Any]:
        return await self._ask("POST", "/call", sid, {"name": name, "input": {"seconds": seconds}})

    async def _loop_blocked(self, sid: str) -> None:
        await self._create(sid, env="blocker")
        # as an event, or as a status where the loop was given up before the stream had begun
        status, result = await self._ask_call(sid, "block", 2.0)
        expect(status in (200, 500) and "blocked the event loop" in str(result), status, result)


def _result(events: str) -> Any:
    """The JSON of an answer that ended, or the text of one that broke."""
    parts: list[str] = []
    for event in events.split("\r\n\r\n"):
        lines = [line for line in event.split("\r\n") if line and not line.startswith(":")]
        if not lines or lines[0] == "event: task_id":
            continue
        data = "\n".join(line.removeprefix("data: ") for line in lines[1:])
        if lines[0] == "event: error":
            return data
        parts.append(data)
        if lines[0] == "event: end":
            return json.loads("".join(parts))
    raise Surprise(f"a stream without an end: {events[-200:]!r}")
