"""The environment that client tests play, what it has seen, and what stands between it and a client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ors import Environment, ImageBlock, Split, TextBlock, ToolError, ToolOutput, tool

__all__ = ["SEEN", "Played", "Proxy", "Scripted", "seen_of"]

SEEN: Counter[str] = Counter()
"""How often each thing was done, by its own name: `add:<name>`, `setup`, …"""


class Played(Environment):
    """Tools that add, fail, wait and end; every run is counted by the name that the call gives it."""

    @classmethod
    def list_splits(cls) -> Any:
        return [Split(name="train", type="train"), Split(name="exam", type="test"), "other"]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [cls.get_task(split, index) for index in range(5)]

    @classmethod
    def num_tasks(cls, split: str) -> Any:
        return 5

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        if not 0 <= index < 5:
            raise IndexError(index)
        return {"id": f"{split}-{index}", "index": index}

    def __init__(self, task_spec: Any, secrets: Any) -> None:
        super().__init__(task_spec)
        self.given = dict(secrets)

    def setup(self) -> None:
        SEEN["setup"] += 1
        if self.task_spec.get("fails"):
            raise ValueError("setup fails on purpose")
        time.sleep(self.task_spec.get("setup_s", 0))

    def teardown(self) -> None:
        SEEN["teardown"] += 1

    def get_prompt(self) -> Any:
        SEEN["prompt"] += 1
        return [TextBlock(text=f"  task {self.task_spec.get('id')}"), ImageBlock(data="aGk=", mimeType="image/png")]

    @tool(concurrent=True)
    def add(self, name: str, reward: float | None = 1.0, wait_s: float = 0.0, size: int = 0) -> ToolOutput:
        """Count a run."""
        SEEN[f"add:{name}"] += 1
        time.sleep(wait_s)
        return ToolOutput(blocks=[TextBlock(text=" é🙂\n" * size + name)], reward=reward)

    @tool
    async def slow(self, name: str, wait_s: float) -> ToolOutput:
        """Wait without blocking."""
        SEEN[f"slow:{name}"] += 1
        await asyncio.sleep(wait_s)
        return ToolOutput(blocks=[TextBlock(text=name)], reward=2.0)

    @tool
    def finish(self) -> ToolOutput:
        """End the episode."""
        return ToolOutput(blocks=[TextBlock(text="over")], reward=3.0, finished=True)

    @tool
    def refuse(self) -> ToolOutput:
        """Fail on purpose."""
        raise ToolError("not like this")

    @tool
    def crash(self) -> ToolOutput:
        """Break."""
        raise RuntimeError("it broke")

    @tool
    def secret(self) -> ToolOutput:
        """Tell what secrets there are."""
        return ToolOutput(blocks=[TextBlock(text=",".join(f"{k}={len(v)}" for k, v in sorted(self.given.items())))])


def seen_of(name: str) -> int:
    """How often a call of this name ran."""
    return SEEN[f"add:{name}"] + SEEN[f"slow:{name}"]


class _Looped:
    """Something asynchronous in a thread of its own."""

    def __init__(self) -> None:
        self.port = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._guarded, "127.0.0.1", 0, backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

    async def _guarded(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._handle(reader, writer)
        writer.close()

    def __enter__(self) -> Any:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        self._loop.close()


class Scripted(_Looped):
    """A server that answers each request as a function says: `answer(method, path, number) -> bytes`, whole."""

    def __init__(self, answer: Callable[[str, str, int], bytes]) -> None:
        super().__init__()
        self._answer = answer
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *lines = head.decode("latin-1").split("\r\n")
            method, path, _ = first.split(" ")
            headers = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in lines if line}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.requests.append((method, path, headers, body))
            answer = self._answer(method, path, len(self.requests))
            writer.write(answer)
            await writer.drain()
            if b"connection: close" in answer or not answer:
                return


class Proxy(_Looped):
    """A TCP proxy in front of a server. `cut`: after how many bytes, of both directions together, a connection ends.

    `cut` holds for the connections that begin while it is set, and once.
    """

    def __init__(self, port: int) -> None:
        super().__init__()
        self._behind = port
        self.cut: int | None = None
        self.connections = 0
        self.passed = 0

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        cut, self.cut = self.cut, None
        left = [cut]
        behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", self._behind)

        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                if left[0] is not None:
                    data, left[0] = data[: left[0]], left[0] - len(data)
                target.write(data)
                await target.drain()
                self.passed += len(data)
                if left[0] is not None and left[0] <= 0:
                    return

        both = [
            asyncio.create_task(pass_on(reader, behind_writer)),
            asyncio.create_task(pass_on(behind_reader, writer)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # first, and without a wait: whoever stops the proxy cancels this as well
            for end in (writer, behind_writer):
                end.transport.abort()
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)


def answer(status: int, body: bytes = b"{}", *headers: str) -> bytes:
    """An HTTP answer."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "content-type: application/json", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def free_socket() -> Iterator[int]:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]
