"""A small driver for ORS servers: what playing an episode needs of the protocol, over aiohttp.

It keeps one rule that matters more than its speed: what fails is a failure, with a kind, and never a reward of 0.
"""

from __future__ import annotations

import codecs
import contextlib
import inspect
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

Blocks = list[dict[str, Any]]
Move = tuple[str, dict[str, Any]]
Act = Callable[[Blocks], Move | Awaitable[Move]]
"""An agent: it gets the blocks that the environment showed last, and returns the next tool and its input."""


class Failure(Exception):
    """An episode could not be played to its end; `kind` is what failures are counted by."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind


class EventStream:
    """Reads server-sent events from bytes, cut anywhere, as the standard says."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._after_return = False
        self._rest = ""
        self._event = ""
        self._data: list[str] = []

    def feed(self, raw: bytes) -> Iterator[tuple[str, str]]:
        """Yield `(event, data)` for each event that these bytes complete."""
        text = self._decoder.decode(raw)
        if not text:
            return
        if self._after_return:
            text = text.removeprefix("\n")  # the second half of a line end that was cut in two
        self._after_return = text.endswith("\r")
        *lines, self._rest = re.split(r"\r\n|\n|\r", self._rest + text)
        for line in lines:
            if not line:
                if self._data:
                    yield self._event or "message", "\n".join(self._data)
                self._event, self._data = "", []
                continue
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")  # one blank belongs to the format; any other is data
            if name == "event":
                self._event = value
            elif name == "data":
                self._data.append(value)


@dataclass
class Episode:
    """What came of one episode."""

    rewards: list[float] = field(default_factory=list)
    failure: Failure | None = None
    call_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0


class Driver:
    """Plays episodes on one server."""

    def __init__(self, base_url: str, http: aiohttp.ClientSession) -> None:
        self.base_url = base_url
        self.http = http

    async def get(self, path: str, sid: str | None = None) -> Any:
        """GET a path and return the JSON of the answer."""
        return await self._json("GET", path, None, sid)

    async def post(self, path: str, body: dict[str, Any] | None = None, sid: str | None = None) -> Any:
        """POST JSON to a path and return the JSON of the answer."""
        return await self._json("POST", path, body, sid)

    async def call(self, env: str, sid: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return its output. Raises Failure for everything else that the call can end in."""
        headers = {"X-Session-ID": sid, "Accept": "text/event-stream"}
        body = {"name": name, "input": arguments}
        result = ""
        async with self.http.post(f"{self.base_url}/{env}/call", json=body, headers=headers) as response:
            await _check(response)
            async for event, data in _events(response):
                if event == "error":
                    raise Failure("tool raised", data)
                if event in ("chunk", "end"):
                    result += data
                if event == "end":
                    return _output(result)
        raise Failure("stream cut", "the answer to a call ended without its end")

    async def play(
        self, env: str, task: dict[str, Any], act: Act, *, secrets: dict[str, str] | None = None, max_calls: int = 100
    ) -> Episode:
        """Play one episode and return what came of it, whatever that is.

        task: the part of the request that names it: `{"split": …, "index": …}` or `{"task_spec": …}`.
        """
        episode = Episode()
        started = time.perf_counter()
        try:
            sid = (await self.post("/create_session"))["sid"]
            try:
                opening = {"env_name": env, **task, **({"secrets": secrets} if secrets else {})}
                await self.post("/create", opening, sid)
                await self._play_out(env, sid, act, episode, max_calls)
            except BaseException:
                # What went wrong first is what is told, even if the session cannot be deleted either.
                with contextlib.suppress(Failure, TimeoutError, aiohttp.ClientError):
                    await self.post("/delete", None, sid)
                raise
            await self.post("/delete", None, sid)
        except Failure as failure:
            episode.failure = failure
        except TimeoutError as error:
            episode.failure = Failure("timeout", str(error))
        except aiohttp.ClientError as error:
            episode.failure = Failure("connection", f"{type(error).__name__}: {error}")
        episode.seconds = time.perf_counter() - started
        return episode

    async def _play_out(self, env: str, sid: str, act: Act, episode: Episode, max_calls: int) -> None:
        shown = await self.get(f"/{env}/prompt", sid)
        for _ in range(max_calls):
            move = act(shown)
            name, arguments = await move if inspect.isawaitable(move) else move
            started = time.perf_counter()
            output = await self.call(env, sid, name, arguments)
            episode.call_seconds.append(time.perf_counter() - started)
            if output["reward"] is not None:
                episode.rewards.append(output["reward"])
            if output["finished"]:
                if not episode.rewards:
                    raise Failure("no reward", "the episode finished without any")
                return
            shown = output["blocks"]
        raise Failure("not finished", f"after {max_calls} calls")

    async def _json(self, method: str, path: str, body: dict[str, Any] | None, sid: str | None) -> Any:
        headers = {"Accept": "application/json"} | ({"X-Session-ID": sid} if sid else {})
        async with self.http.request(method, self.base_url + path, json=body, headers=headers) as response:
            await _check(response)
            text = await response.text()
        try:
            return json.loads(text)
        except ValueError as error:
            raise Failure("bad answer", f"{method} {path}: {error}") from None


def text_of(blocks: Blocks) -> str:
    """The text in blocks; images are left out."""
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str]]:
    stream = EventStream()
    async for raw in response.content.iter_any():
        for event in stream.feed(raw):
            yield event


def _output(result: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(result)
        output: dict[str, Any]
        if answer["ok"]:
            output = answer["output"]
            return output
        error = answer["error"]
    except (ValueError, KeyError, TypeError) as fault:
        raise Failure("bad answer", f"{type(fault).__name__}: {fault}") from None
    raise Failure("call refused", error)


async def _check(response: aiohttp.ClientResponse) -> None:
    if response.status != 200:
        raise Failure(f"HTTP {response.status}", (await response.text())[:500])
