"""The lines to clients: how much goes over them, how they stay up, and whoever else stands between."""

from __future__ import annotations

import asyncio
import json
import socket as sockets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed

from ors.openenv.server import create_app
from served import LIMIT_S, Served, wait_until

from .games import LIVES, Adder, Move, Seen
from .talking import Socket

MIB = 1 << 20


@pytest.mark.parametrize("size", [0, 200, 70_000, 17 * MIB])
def test_messages_of_any_size_in_both_directions(served: Served, size: int) -> None:
    with Socket(served.url) as socket:
        socket.reset()
        assert len(socket.step("fill", value=size)["observation"]["filling"]) == size
        socket.step("add", value="y" * size)
        assert socket.state()["step_count"] == 2


def test_a_hundred_mebibytes_and_no_more(served: Served) -> None:
    shell = len(json.dumps({"type": "step", "data": {"value": ""}}))
    with Socket(served.url) as socket:
        socket.reset()
        socket.say('{"type": "step", "data": {"value": "%s"}}' % ("y" * (100 * MIB - shell)))
        assert socket.hear()["type"] == "observation"
        try:
            socket.say('{"type": "step", "data": {"value": "%s"}}' % ("y" * (100 * MIB - shell + 1)))
        except ConnectionClosed:
            pass  # it is told as soon as the head is read
        assert socket.closed() == 1009


def test_a_smaller_limit_is_a_setting() -> None:
    running = Served([Adder], max_message=1000)
    try:
        with Socket(running.url) as socket:
            socket.reset()
            socket.say({"type": "step", "data": {"value": "y" * 1000}})
            assert socket.closed() == 1009
        wait_until(lambda: running.status()["sessions"] == 0)
    finally:
        running.stop()


def test_no_compression_is_agreed_on_also_where_it_is_asked_for(served: Served) -> None:
    with Socket(served.url, compression="deflate") as socket:
        assert "Sec-WebSocket-Extensions" not in socket.line.response.headers  # type: ignore[union-attr]
        assert socket.reset()["done"] is False


def test_pings_are_answered_in_the_middle_of_a_step(served: Served) -> None:
    from .games import gate

    entered, go = gate("pinged")
    with Socket(served.url) as socket:
        socket.reset()
        socket.say({"type": "step", "data": {"do": "wait", "value": "pinged"}})
        assert entered.wait(10)
        assert socket.line.ping().wait(LIMIT_S)
        go.set()
        assert socket.hear()["type"] == "observation"


def test_a_proxy_that_eats_pings_does_not_cut_a_session_off() -> None:
    """Ten pings unanswered, and the session is as it was."""
    running = Served([Adder], socket_ping=0.05)
    try:
        with Deaf(running.url) as proxy, Socket(proxy.url, ping_interval=None) as socket:
            socket.reset()
            socket.step(number=2)
            wait_until(lambda: proxy.eaten >= 10)
            assert socket.step(number=2)["observation"]["total"] == 4
    finally:
        running.stop()


def test_a_server_that_stops_says_so() -> None:
    running = Served([Adder])
    try:
        closed = LIVES["closed"]
        with Socket(running.url) as socket:
            socket.reset()
            stopping = threading.Thread(target=running.stop)
            stopping.start()
            assert socket.closed() in (1012, 1000, 1001)
            stopping.join(LIMIT_S)
        assert LIVES["closed"] == closed + 1
    finally:
        running.stop()


# Where our own line cannot be used


def test_middleware_and_added_sockets_work_with_them(served: Served) -> None:
    seen: list[str] = []

    class Watching:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def sending(message: Any) -> None:
                seen.append(message["type"])
                await send(message)

            await self.app(scope, receive, sending)

    app = create_app(Adder, Move, Seen)
    app.add_middleware(Watching)  # type: ignore[arg-type]

    @app.get("/pool_status")
    def pool_status() -> dict[str, int]:
        return {"workers": 3}

    running = Served([app], through_app=True)
    try:
        with Socket(running.url) as socket:
            socket.reset()
            assert socket.step(number=3)["observation"]["total"] == 3
            assert socket.error("{")["code"] == "INVALID_JSON"
            assert socket.error(b"{")["code"] == "INVALID_JSON"
            assert socket.line.response.headers["X-Session-ID"]  # type: ignore[union-attr]
        assert running.client.get("/pool_status").json() == {"workers": 3}
        wait_until(lambda: running.status()["sessions"] == 0)
    finally:
        running.stop()
    assert seen.count("websocket.send") == 4 and seen[1] == "websocket.accept"


@contextmanager
def other_server(app: Any, implementation: str) -> Iterator[str]:
    """uvicorn with its own sockets, as `uvicorn server.app:app` starts it."""
    ready = threading.Event()
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, ws=implementation, lifespan="on")  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    startup = server.startup

    async def start(sockets: Any = None) -> None:
        await startup(sockets)
        ready.set()

    server.startup = start  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    assert ready.wait(LIMIT_S)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(LIMIT_S)


@pytest.mark.parametrize("implementation", ["websockets-sansio", "wsproto"])
def test_another_server_serves_the_application_too(implementation: str) -> None:
    made, closed = LIVES["made"], LIVES["closed"]
    app = create_app(Adder, Move, Seen, max_concurrent_envs=1)

    def free() -> bool:
        return app.state.openenv_server.active_sessions == 0

    with other_server(app, implementation) as url:
        for _ in range(3):
            with Socket(url) as socket:
                for number in range(50):
                    socket.say({"type": "step", "data": {"number": 1}} if number else {"type": "reset"})
                assert [socket.hear()["data"]["observation"]["total"] for _ in range(50)] == list(range(50))
                with Socket(url) as other:
                    assert other.error()["code"] == "CAPACITY_REACHED"
                    assert other.closed() == 1000
            wait_until(free)
        with Socket(url) as socket:
            socket.reset()
            socket.cut()
        wait_until(free)
        with Socket(url) as socket:
            assert socket.reset()["done"] is False
            socket.say({"type": "close"})
            assert socket.closed() == 1000
    assert LIVES["made"] - made == LIVES["closed"] - closed == 5


class Deaf:
    """A proxy that passes everything but pings and pongs on."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._there = (host, int(port))
        self._listener = sockets.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.eaten = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Deaf:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.close()
        self._thread.join(LIMIT_S)

    def _run(self) -> None:
        near, _ = self._listener.accept()
        far = sockets.create_connection(self._there)
        up = threading.Thread(target=self._pump, args=(near, far), daemon=True)
        up.start()
        self._pump_frames(far, near)
        up.join(LIMIT_S)
        near.close()
        far.close()

    @staticmethod
    def _pump(source: sockets.socket, sink: sockets.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(sockets.SHUT_WR)
        except OSError:
            pass

    def _pump_frames(self, source: sockets.socket, sink: sockets.socket) -> None:
        stream = source.makefile("rb")
        try:
            while (line := stream.readline()) not in (b"\r\n", b""):
                sink.sendall(line)
            sink.sendall(b"\r\n")
            while len(head := stream.read(2)) == 2:
                size = head[1]
                more = stream.read({126: 2, 127: 8}.get(size, 0))
                payload = stream.read(int.from_bytes(more, "big") if more else size)
                if head[0] & 0x0F in (9, 10):
                    self.eaten += 1
                else:
                    sink.sendall(head + more + payload)
            sink.shutdown(sockets.SHUT_WR)
        except OSError:
            pass
