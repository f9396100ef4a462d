"""A server of OpenEnv's frames as the `openenv` package's is: no ids, no way back to a session. Its tests steer it."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

__all__ = ["Plain", "Talked"]


@dataclass
class Talked:
    """One connection: how it was asked for, and what its environment was told."""

    query: dict[str, str]
    headers: dict[str, str]
    steps: int = 0
    closed: bool = False
    heard: list[Any] = field(default_factory=list)
    transport: Any = None
    socket: Any = None


class Plain:
    """Sessions that count. A step may say `cut` ("before", "after"), `hold` (until `release`), `say`, `unasked`."""

    def __init__(self, most: int = 1000, *, pongs: bool = True) -> None:
        self.most = most
        self.pongs = pongs
        self.pings = 0
        self.answers = 0
        self.held = 0
        self.sessions: list[Talked] = []
        self.tasks: dict[str, list[Any]] = {"train": [{"seed": index} for index in range(250)], "texts": ["a", "b"]}
        self.ranges = True
        self.asked: list[tuple[str, str, Any, dict[str, str]]] = []
        self.port = 0
        self.holding = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> int:
        return sum(not session.closed for session in self.sessions)

    def release(self) -> None:
        """Let the steps that are held go on."""
        self._loop.call_soon_threadsafe(self._released.set)

    def hold(self) -> None:
        """Hold them again."""
        self._loop.call_soon_threadsafe(self._released.clear)

    def cut(self, which: int = -1) -> None:
        """Cut a connection as a network does, without a word."""
        self._loop.call_soon_threadsafe(self.sessions[which].transport.abort)

    def ping(self, which: int = -1) -> None:
        """Ping a client, as a server that ends what does not answer."""
        asyncio.run_coroutine_threadsafe(self.sessions[which].socket.ping(), self._loop).result(30)

    def __enter__(self) -> Plain:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._released = asyncio.Event()
        app = web.Application()
        app.router.add_get("/{prefix:.*}ws", self._talk)
        app.router.add_get("/{prefix:.*}health", self._healthy)
        app.router.add_route("*", "/{path:.*}", self._task)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        for session in self.sessions:
            if session.transport is not None:
                session.transport.abort()
        await runner.cleanup()

    async def _healthy(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "healthy"})

    async def _talk(self, request: web.Request) -> web.WebSocketResponse:
        session = Talked(dict(request.query), {name.lower(): value for name, value in request.headers.items()})
        session.transport = request.transport
        session.socket = socket = web.WebSocketResponse(max_msg_size=1 << 20, autoping=self.pongs)
        self.sessions.append(session)
        await socket.prepare(request)
        try:
            if self.alive > self.most:
                await self._fail(socket, "CAPACITY_REACHED", "full", active_sessions=self.most, max_sessions=self.most)
                await socket.close()
                return socket
            async for message in socket:
                if message.type in (WSMsgType.PING, WSMsgType.PONG):
                    self.pings += message.type is WSMsgType.PING
                    self.answers += message.type is WSMsgType.PONG
                    continue
                if message.type is not WSMsgType.TEXT:
                    break
                asked = json.loads(message.data)
                session.heard.append(asked)
                if asked["type"] == "close":
                    await socket.close()
                    break
                await self._answer(socket, session, asked)
        finally:
            session.closed = True
        return socket

    async def _answer(self, socket: web.WebSocketResponse, session: Talked, asked: dict[str, Any]) -> None:
        data = asked.get("data") or {}
        if extra := set(asked) - {"type", "data"}:
            await self._fail(socket, "VALIDATION_ERROR", "Invalid message", errors=[sorted(extra)])
            return
        if asked["type"] == "mcp":
            await self._fail(socket, "UNKNOWN_TYPE", "Unknown message type: mcp")
            return
        if asked["type"] == "reset":
            session.steps = int(data.get("start", 0))
        elif asked["type"] == "step":
            if data.get("cut") == "before":
                session.transport.abort()
                return
            if data.get("number", 0) < 0:
                await self._fail(socket, "EXECUTION_ERROR", "only numbers from 0 on are added")
                return
            session.steps += data.get("number", 1)
        if data.get("cut") == "after":
            session.transport.abort()
            return
        if data.get("hold"):
            self.held += 1
            self.holding.set()
            await self._released.wait()
        if "say" in data:
            await socket.send_str(data["say"])
            return
        await socket.send_str(self._said(session, asked))
        if data.get("unasked"):
            # said after the answer, by a server that has more to say than it was asked
            await socket.send_str(data["unasked"])

    @staticmethod
    def _said(session: Talked, asked: dict[str, Any]) -> str:
        if asked["type"] == "state":
            return json.dumps({"type": "state", "data": {"episode_id": None, "step_count": session.steps}})
        seen = {"metadata": {}, "total": session.steps}
        data: dict[str, Any] = {"observation": seen, "reward": session.steps / 10, "done": session.steps >= 10}
        return json.dumps({"type": "observation", "data": data})

    @staticmethod
    async def _fail(socket: web.WebSocketResponse, code: str, words: str, **more: Any) -> None:
        await socket.send_str(json.dumps({"type": "error", "data": {"message": words, "code": code, **more}}))

    async def _task(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else {}
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append((request.method, request.path, body, headers))
        what = request.path.rpartition("/")[2]
        if what == "list_environments":
            return web.json_response(["count er"])
        if "/count er/" not in request.path:
            return web.json_response({"detail": "no such environment"}, status=404)
        if what == "splits":
            return web.json_response([{"name": name, "type": "train"} for name in self.tasks])
        tasks = self.tasks[body["split"]]
        if what == "num_tasks":
            return web.json_response({"num_tasks": len(tasks)})
        if what == "tasks":
            return web.json_response({"tasks": tasks, "env_name": "count er"})
        if what == "task":
            if not 0 <= body["index"] < len(tasks):
                return web.json_response({"detail": "Invalid task index"}, status=400)
            return web.json_response({"task": tasks[body["index"]]})
        if what == "task_range" and self.ranges:
            return web.json_response({"tasks": tasks[body.get("start") : body.get("stop")]})
        detail = f"get_{what} is not supported for this environment"
        return web.json_response({"detail": detail}, status=501)
