"""Faults of OpenEnv's server that its users meet, by their numbers in docs/openenv-faults.md: what is done instead.

Those that have a test where the part is tested are named on that page with it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

from faces.openenv.games import LIVES, Adder, Alone, Broken, Move, Seen, Sums, gate
from faces.openenv.talking import Socket, rpc
from ors.openenv.server import create_app
from served import Served, wait_until


def test_6_1_requests_over_http_are_one_episode_and_who_names_none_is_told() -> None:
    running = Served([create_app(Adder, Move, Seen)])
    try:
        client = running.client
        begun = client.post("/reset", json={"seed": 1})
        named = {"X-Session-ID": begun.headers["X-Session-ID"]}
        for number in (1, 2):
            client.post("/step", json={"action": {"number": number}}, headers=named)
        assert client.get("/state", headers=named).json()["step_count"] == 2
        lost = client.post("/step", json={"action": {"number": 9}})
        assert lost.json()["observation"]["total"] == 9 and "X-Session-ID" in lost.headers["X-ORS-Notice"]
    finally:
        running.stop()


def test_6_9_what_differs_between_the_transports_is_the_envelope_and_nothing_else() -> None:
    """The float of HTTP and the keys of a socket are what clients know; the observation is one."""
    running = Served([create_app(Adder, Move, Seen)])
    try:
        client = running.client
        named = {"X-Session-ID": client.post("/reset").headers["X-Session-ID"]}
        over_http = client.post("/step", json={"action": {"do": "told"}}, headers=named).json()
        with Socket(running.url) as socket:
            socket.reset()
            over_socket = socket.step("told")
        assert over_http == over_socket
    finally:
        running.stop()


def test_6_11_7_26_the_state_is_whole_over_every_transport() -> None:
    running = Served([create_app(Adder, Move, Seen)])
    try:
        client = running.client
        named = {"X-Session-ID": client.post("/reset", json={"seed": 5}).headers["X-Session-ID"]}
        with Socket(running.url) as socket:
            socket.reset(seed=5)
            assert client.get("/state", headers=named).json() == socket.state()
        assert client.get("/schema").json()["state"] == Sums.model_json_schema()
    finally:
        running.stop()


def test_6_18_a_session_that_is_closed_while_it_is_made_leaves_nothing() -> None:
    entered, go = threading.Event(), threading.Event()

    class Slow(Adder):
        def __init__(self) -> None:
            entered.set()
            assert go.wait(30)
            super().__init__()

    running = Served([Slow])
    made, closed = LIVES["made"], LIVES["closed"]
    try:
        with Socket(running.url) as socket:
            socket.say({"type": "reset"})
            assert entered.wait(10)
            socket.cut()
        wait_until(lambda: running.status()["sessions"] == 0)
        go.set()
        # a constructor that could be cut has made nothing
        wait_until(lambda: running.status()["running"] == 0)
        assert LIVES["made"] - made == LIVES["closed"] - closed
        with Socket(running.url) as socket:
            assert socket.reset()["done"] is False
    finally:
        go.set()
        running.stop()


def test_6_24_idle_sessions_need_no_thread() -> None:
    class Free(Adder):
        thread_affinity = "any"

    running = Served([create_app(Free, Move, Seen)])
    sockets = []
    try:
        for _ in range(100):
            sockets.append(Socket(running.url))
            sockets[-1].reset()
        ours = [thread for thread in threading.enumerate() if thread.name.startswith("ors-")]
        assert len(ours) < 20, [thread.name for thread in ours]
    finally:
        for socket in sockets:
            socket.cut()
        running.stop()


def test_6_28_a_session_of_tools_that_nobody_closes_ends_by_itself() -> None:
    running = Served([Alone], session_idle=0.3)
    try:
        sid = rpc(running.client, "openenv/session/create")["result"]["session_id"]
        assert rpc(running.client, "openenv/session/create")["error"]["code"] == -32000
        wait_until(lambda: running.status()["sessions"] == 0)
        assert rpc(running.client, "openenv/session/create")["result"]["session_id"] != sid
    finally:
        running.stop()


def test_6_29_a_client_that_leaves_during_a_step_leaves_a_place_and_no_traceback(caplog: Any) -> None:
    entered, go = gate("6.29")
    running = Served([create_app(Adder, Move, Seen, max_concurrent_envs=2)])
    try:
        with caplog.at_level(logging.DEBUG):
            with Socket(running.url) as socket:
                socket.reset()
                socket.say({"type": "step", "data": {"do": "wait", "value": "6.29"}})
                assert entered.wait(10)
                socket.cut()
            wait_until(lambda: running.status()["sessions"] == 0)
            go.set()
            with Socket(running.url) as socket:
                assert socket.reset()["done"] is False
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    finally:
        go.set()
        running.stop()


def test_6_30_a_close_that_hangs_is_bounded() -> None:
    go = threading.Event()

    class Stuck(Alone):
        def close(self) -> None:
            go.wait(30)

    running = Served([Stuck], teardown_timeout=0.3, cut_grace=0.1)
    try:
        with Socket(running.url) as socket:
            socket.reset()
        with Socket(running.url) as socket:
            assert socket.reset()["done"] is False
    finally:
        go.set()
        running.stop()


def test_6_33_a_client_that_leaves_while_its_environment_is_made_leaves_a_place() -> None:
    entered, go = threading.Event(), threading.Event()

    class Slow(Alone):
        def __init__(self) -> None:
            entered.set()
            assert go.wait(30)
            super().__init__()

    running = Served([Slow])
    try:
        for _ in range(3):
            entered.clear()
            go.clear()
            with Socket(running.url) as socket:
                socket.say({"type": "reset"})
                assert entered.wait(10)
                socket.cut()
            go.set()
        with Socket(running.url) as socket:
            assert socket.reset()["done"] is False
    finally:
        go.set()
        running.stop()


def test_6_38_sessions_are_counted_where_they_can_be_seen() -> None:
    running = Served([create_app(Adder, Move, Seen), create_app(Broken, Move, Seen)])
    try:
        with Socket(running.url) as socket:
            socket.reset()
            status = running.status()
            assert status["sessions"] == 1 and status["opened"] >= 1
        assert running.client.get("/ready").status_code == 200
        with Socket(running.url, "/broken/ws") as socket:
            assert socket.error({"type": "reset"})["code"] == "FACTORY_ERROR"
        wait_until(lambda: running.status()["sessions"] == 0)
    finally:
        running.stop()


def test_6_40_clients_are_told_as_much_of_an_exception_as_is_wanted() -> None:
    running = Served([create_app(Adder, Move, Seen)], return_errors="none")
    try:
        with Socket(running.url) as socket:
            socket.reset()
            failed = socket.error({"type": "step", "data": {"do": "fail"}})
            assert "it fell over" not in json.dumps(failed) and failed["code"] == "EXECUTION_ERROR"
    finally:
        running.stop()


def test_7_3_seven_sessions_beside_one_have_their_own_state() -> None:
    running = Served([create_app(Adder, Move, Seen, max_concurrent_envs=8)])
    sockets = [Socket(running.url) for _ in range(8)]
    try:
        for number, socket in enumerate(sockets):
            socket.reset(seed=number)
        for _ in range(3):
            for number, socket in enumerate(sockets):
                socket.step(number=number)
        assert [socket.state()["total"] for socket in sockets] == [3 * number for number in range(8)]
        assert [socket.state()["seed"] for socket in sockets] == list(range(8))
    finally:
        for socket in sockets:
            socket.cut()
        running.stop()


def test_7_16_a_step_may_take_its_time_and_the_line_stays_up() -> None:
    entered, go = gate("7.16")
    running = Served([create_app(Adder, Move, Seen)], socket_ping=0.05, session_idle=0.5)
    try:
        with Socket(running.url) as socket:
            socket.reset()
            socket.say({"type": "step", "data": {"do": "wait", "number": 1, "value": "7.16"}})
            assert entered.wait(10)
            begun = time.monotonic()
            wait_until(lambda: time.monotonic() - begun > 1.0)  # twice the time after which a session is idle
            go.set()
            assert socket.hear()["data"]["observation"]["total"] == 1
    finally:
        go.set()
        running.stop()


def test_7_15_a_client_that_is_busy_for_long_keeps_its_session() -> None:
    """A client whose loop is blocked answers no pings; nobody needs its place, so it keeps it."""
    running = Served([create_app(Adder, Move, Seen)], socket_ping=0.05)

    async def play() -> int:
        import aiohttp

        async with aiohttp.ClientSession() as http, http.ws_connect(f"{running.url}/ws") as line:
            await line.send_json({"type": "step", "data": {"number": 1}})
            await line.receive_json()
            time.sleep(0.6)  # noqa: ASYNC251 - a dozen pings that are not answered
            await line.send_json({"type": "step", "data": {"number": 1}})
            answer: int = (await line.receive_json())["data"]["observation"]["total"]
            return answer

    try:
        assert asyncio.run(play()) == 2
    finally:
        running.stop()


def test_7_34_a_step_that_hangs_does_not_hold_the_only_place() -> None:
    entered, go = gate("7.34")
    running = Served([Alone], call_timeout=0.2, cut_grace=0.1)
    try:
        with Socket(running.url) as socket:
            socket.reset()
            failed = socket.error({"type": "step", "data": {"do": "wait", "value": "7.34"}})
            assert entered.is_set() and failed["code"] in ("EXECUTION_ERROR", "SESSION_ERROR")
        with Socket(running.url) as socket:
            assert socket.reset()["done"] is False
    finally:
        go.set()
        running.stop()


def test_the_page_has_a_row_for_each_fault_of_the_server() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "openenv-faults.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")}
    server = [1, 6, *range(8, 12), 13, *range(16, 36), 37, 38, 39, 40, 41, 43]
    missing = {f"6.{number}" for number in server} - rows
    missing |= {f"7.{number}" for number in [*range(1, 6), *range(14, 17), *range(20, 41), 42, 45, 46]} - rows
    assert missing <= {"6.12", "6.36", "7.18"}, missing
