"""Sockets come and go: what becomes of their sessions, who gets a place, who has to wait."""

from __future__ import annotations

import socket as sockets
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from ors.openenv import ConcurrencyConfigurationError
from ors.openenv.server import create_app
from served import Served, wait_until

from .games import LIVES, Adder, Alone, Move, Seen, gate
from .talking import Socket, rpc


@pytest.fixture
def two() -> Iterator[Served]:
    """A server with two places."""
    running = Served([create_app(Adder, Move, Seen, max_concurrent_envs=2)], socket_ping=0.1)
    yield running
    running.stop()


def sessions(served: Served) -> int:
    count: int = served.status()["sessions"]
    return count


def test_a_session_ends_with_its_socket(served: Served) -> None:
    before, closed = sessions(served), LIVES["closed"]
    with Socket(served.url) as socket:
        socket.reset()
        assert sessions(served) == before + 1
        socket.cut()
    wait_until(lambda: sessions(served) == before and LIVES["closed"] == closed + 1)


def test_a_socket_that_says_nothing_makes_nothing(served: Served) -> None:
    before, made = sessions(served), LIVES["made"]
    with Socket(served.url):
        wait_until(lambda: sessions(served) == before + 1)
        assert LIVES["made"] == made
    wait_until(lambda: sessions(served) == before)


def test_a_client_that_leaves_during_a_step_leaves_nothing_behind(served: Served) -> None:
    entered, go = gate("left")
    before, closed = sessions(served), LIVES["closed"]
    with Socket(served.url) as socket:
        socket.reset()
        socket.say({"type": "step", "data": {"do": "wait", "value": "left"}})
        assert entered.wait(10)
        socket.cut()
    wait_until(lambda: sessions(served) == before)  # at once, not when the step is over
    go.set()
    wait_until(lambda: LIVES["closed"] == closed + 1)


def test_a_session_that_was_made_for_it_is_attached_to(served: Served) -> None:
    sid = rpc(served.client, "openenv/session/create")["result"]["session_id"]
    with Socket(served.url, f"/ws?session_id={sid}") as socket:
        assert socket.step(number=2)["observation"]["total"] == 2
        with Socket(served.url, f"/ws?session_id={sid}") as other:
            said = other.error()
            assert said["code"] == "SESSION_ERROR" and "already" in said["message"]
            assert other.closed() == 1000
    # it was there before the socket, so it is there after it
    wait_until(lambda: _state_of(served, sid) is not None)
    with Socket(served.url, f"/ws?session_id={sid}") as socket:
        assert socket.state()["total"] == 2
    assert served.client.get("/state", headers={"X-Session-ID": sid}).json()["total"] == 2
    assert rpc(served.client, "openenv/session/close", session_id=sid)["result"]["closed"] in (True, False)


def _state_of(served: Served, sid: str) -> Any:
    with Socket(served.url, f"/ws?session_id={sid}") as socket:
        answer = socket.ask({"type": "state"})
        return answer["data"] if answer["type"] == "state" else None


def test_a_session_that_is_closed_while_attached_ends_when_its_socket_leaves(served: Served) -> None:
    before = sessions(served)
    sid = rpc(served.client, "openenv/session/create")["result"]["session_id"]
    with Socket(served.url, f"/ws?session_id={sid}") as socket:
        socket.reset()
        closing = rpc(served.client, "openenv/session/close", session_id=sid)["result"]
        assert closing == {"session_id": sid, "closed": False, "closing": True}
        assert socket.step(number=1)["observation"]["total"] == 1
    wait_until(lambda: sessions(served) == before)


def test_a_session_that_there_is_not(served: Served) -> None:
    with Socket(served.url, "/ws?session_id=nobody") as socket:
        said = socket.error()
        assert said == {"message": "Unknown session_id: nobody", "code": "SESSION_ERROR"}
        assert socket.closed() == 1000


def test_a_client_that_asked_for_it_comes_back_to_its_session(served: Served) -> None:
    with Socket(served.url, "/ws?keep=1") as socket:
        sid = socket.sid
        socket.reset()
        socket.step(number=5)
        socket.cut()
    with Socket(served.url, f"/ws?keep=1&session_id={sid}") as socket:
        assert socket.state()["total"] == 5
        socket.say({"type": "close"})
        assert socket.closed() == 1000
    with Socket(served.url, f"/ws?keep=1&session_id={sid}") as socket:
        assert socket.error()["code"] == "SESSION_ERROR"


def test_it_comes_back_while_its_step_runs_and_gets_its_answer_once(served: Served) -> None:
    entered, go = gate("kept")
    step = {"type": "step", "data": {"do": "wait", "number": 3, "value": "kept"}, "id": "s1"}
    with Socket(served.url, "/ws?keep=1") as socket:
        sid = socket.sid
        socket.reset()
        socket.say(step)
        assert entered.wait(10)
        socket.cut()
    with Socket(served.url, f"/ws?keep=1&session_id={sid}") as socket:
        socket.say(step)
        go.set()
        answer = socket.hear()
        assert answer["id"] == "s1" and answer["data"]["observation"]["total"] == 3
        assert socket.ask(step) == answer
        assert socket.state()["step_count"] == 1


def test_it_comes_back_before_the_server_has_seen_it_go(served: Served) -> None:
    with Socket(served.url, "/ws?keep=1") as before:
        before.reset()
        before.step(number=1)
        with Socket(served.url, f"/ws?keep=1&session_id={before.sid}") as after:
            assert after.step(number=1)["observation"]["total"] == 2
        assert before.closed() in (1006, 1001)


def test_who_does_not_come_back_in_time_loses_it() -> None:
    running = Served([Adder], socket_keep=0.2)
    try:
        with Socket(running.url, "/ws?keep=1") as socket:
            socket.reset()
            socket.cut()
        wait_until(lambda: running.status()["sessions"] == 0)
        with Socket(running.url, f"/ws?keep=1&session_id={socket.sid}") as back:
            assert back.error() == {"message": "Session client gone", "code": "SESSION_ERROR"}
    finally:
        running.stop()


def test_a_key_is_needed_and_sessions_belong_to_it() -> None:
    running = Served([Adder], api_keys=("one", "two"))
    one = {"additional_headers": {"Authorization": "Bearer one"}}
    try:
        with pytest.raises(InvalidStatus) as refused:
            Socket(running.url)
        assert refused.value.response.status_code == 401
        with Socket(running.url, "/ws?keep=1", **one) as socket:
            socket.reset()
            two = {"additional_headers": {"Authorization": "Bearer two"}}
            with Socket(running.url, f"/ws?keep=1&session_id={socket.sid}", **two) as other:
                assert other.error()["code"] == "SESSION_ERROR"
            assert socket.step(number=1)["observation"]["total"] == 1
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/nothing", {}, 404),
        ("/nobody/ws", {}, 404),
        ("/ws", {"Origin": "https://elsewhere.example"}, 403),
    ],
)
def test_who_is_refused_before_there_is_a_socket(
    served: Served, path: str, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        Socket(served.url, path, additional_headers=headers)
    assert refused.value.response.status_code == status


# Places


def test_who_comes_when_all_places_are_taken_is_told_how_many_there_are_and_when_to_come_back(two: Served) -> None:
    with Socket(two.url) as one, Socket(two.url) as other:
        one.reset()
        other.reset()
        with Socket(two.url) as third:
            said = third.error()
            assert said["code"] == "CAPACITY_REACHED"
            assert (said["active_sessions"], said["max_sessions"], said["retry_after"]) == (2, 2, 2.0)
            assert "2/2" in said["message"]
            assert third.closed() == 1000
        refused = two.client.post("/reset", json={})
        assert refused.status_code == 503 and refused.headers["Retry-After"] == "2"
        assert "2/2" in refused.json()["detail"]
        error = rpc(two.client, "openenv/session/create")["error"]
        assert error["code"] == -32000
        assert error["data"] == {"active_sessions": 2, "max_sessions": 2, "retry_after": 2.0}
        with Socket(two.url, "/mcp") as fourth:
            assert fourth.hear()["error"]["code"] == -32000


def test_a_place_is_free_as_soon_as_its_client_is_gone(two: Served) -> None:
    for _ in range(20):
        with Socket(two.url) as one, Socket(two.url) as other:
            assert one.reset()["done"] is other.reset()["done"] is False
            one.cut()
    with Socket(two.url) as one, Socket(two.url) as other:
        assert one.reset()["done"] is other.reset()["done"] is False


def test_a_place_is_free_when_the_environment_is_closed_and_not_before() -> None:
    closing, go = threading.Event(), threading.Event()

    class Lingering(Alone):
        def close(self) -> None:
            closing.set()
            assert go.wait(30)

    running = Served([Lingering])
    try:
        with Socket(running.url) as one:
            one.reset()
        assert closing.wait(10)
        with Socket(running.url) as other:
            other.say({"type": "reset"})
            with pytest.raises(TimeoutError):
                other.line.recv(timeout=0.3)
            go.set()
            assert other.hear()["type"] == "observation"
    finally:
        go.set()
        running.stop()


def test_a_class_that_says_so_has_one_session_and_cannot_be_given_more() -> None:
    with pytest.raises(ConcurrencyConfigurationError):
        create_app(Alone, Move, Seen, max_concurrent_envs=2)
    running = Served([Alone])
    try:
        with Socket(running.url) as one:
            one.reset()
            with Socket(running.url) as other:
                assert other.error()["max_sessions"] == 1
    finally:
        running.stop()


def test_what_a_class_inherits_does_not_limit_it() -> None:
    class Plain(Adder):
        pass

    running = Served([Plain])
    many: list[Socket] = []
    try:
        for _ in range(40):
            many.append(Socket(running.url))
            many[-1].reset()
    finally:
        for socket in many:
            socket.cut()
        running.stop()


def test_a_peer_that_is_gone_without_a_word_is_given_up_when_its_place_is_needed(two: Served) -> None:
    with Socket(two.url) as alive:
        alive.reset()
        dead = _Silent(two.url)
        with dead:
            # nobody needs its place, so it keeps it, and its session
            talks = two.application.openenv.sessions.attached  # type: ignore[union-attr]
            wait_until(lambda: any(talk.silent_since is not None for talk in list(talks.values())))
            assert two.status()["sessions"] == 2
            with Socket(two.url) as third:
                assert third.reset()["done"] is False
            assert dead.was_cut()
        assert alive.step(number=1)["observation"]["total"] == 1


def test_a_peer_that_is_gone_is_forgotten_after_the_idle_time() -> None:
    running = Served([Adder], socket_ping=0.1, session_idle=1.0)
    try:
        with Socket(running.url) as alive, _Silent(running.url) as dead:
            alive.reset()
            wait_until(lambda: running.status()["sessions"] == 1)
            # it has been as quiet for as long, but its client answers pings
            assert dead.was_cut()
            assert alive.step(number=1)["observation"]["total"] == 1
    finally:
        running.stop()


class _Silent:
    """A client that opens a session and is never heard of again, not even by TCP's own words."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self.line = sockets.create_connection((host, int(port)))
        self.line.sendall(
            b"GET /ws HTTP/1.1\r\nHost: " + f"{host}:{port}".encode() + b"\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        self.line.settimeout(10)
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.line.recv(4096)
        assert head.startswith(b"HTTP/1.1 101 ")

    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *exc: object) -> None:
        self.line.close()

    def was_cut(self) -> bool:
        """Whether, after the pings that it did not answer, there comes no more."""
        try:
            while self.line.recv(4096):
                pass
        except ConnectionError:
            pass
        return True
