"""What takes long, all at the same time: setups and tools beyond the clients' limit of 30 s of silence, idle sessions.

The server of this module forgets a session after 15 s without a sign of life; the clients ping every 10 s.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .processes import Driver, ServedEnvironments, log_file
from .test_episodes import said
from .test_queries import value
from .wire import Answer, Connection, parse_events, result_of

LONG_S = 32
WATCHED_S = 21.5


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedEnvironments]:
    log = log_file(tmp_path_factory.mktemp("impatient"), "server")
    with ServedEnvironments(log, settings={"session_idle": 15}) as served:
        yield served


@pytest.fixture(scope="module")
def reports(impatient: ServedEnvironments, drivers: Callable[[str], Driver]) -> dict[str, Any]:
    """What both clients saw, and in the meantime a session that nobody pinged."""
    token = uuid.uuid4().hex

    async def forsake() -> str:
        async with Connection(impatient.port) as connection:
            sid = await connection.session({"token": token})
            result_of(await connection.call(sid, "hint"))
            return sid

    async def look_after(sid: str) -> dict[str, Any]:
        async with Connection(impatient.port) as connection:
            ping = await connection.request("POST", "/ping", X_Session_ID=sid)
            lived = result_of(await connection.call(await connection.session(), "lived", {"token": token}))
            return {"ping": ping.status, "lived": json.loads(lived["output"]["blocks"][0]["text"])}

    async def watch(task: dict[str, Any], tool_s: float) -> Answer:
        async with Connection(impatient.port) as connection:
            return await connection.call(await connection.session(task), "wait", {"seconds": tool_s})

    async def meanwhile() -> dict[str, Answer]:
        tool, setup = await asyncio.gather(watch({}, WATCHED_S), watch({"setup_s": WATCHED_S}, 0))
        return {"tool": tool, "setup": setup}

    peers = ("ors-sdk", "openreward")
    for peer in peers:
        # started before the clock runs
        drivers(peer).play(impatient.url, "enter")
    forsaken = asyncio.run(forsake())
    for peer in peers:
        drivers(peer).ask(impatient.url, "patience", setup_s=LONG_S, tool_s=LONG_S, idle_s=LONG_S)
    watched = asyncio.run(meanwhile())
    seen = {peer: drivers(peer).report() for peer in peers}
    return {**seen, "watched": watched, "forsaken": asyncio.run(look_after(forsaken))}


@pytest.mark.parametrize("peer", ["ors-sdk", "openreward"])
@pytest.mark.parametrize("action", ["slow tool", "slow plain tool", "call during setup"])
def test_a_call_outlasts_the_clients_patience_and_runs_once(reports: dict[str, Any], peer: str, action: str) -> None:
    outcome = value(reports[peer][action])

    assert said(outcome["first"]) == "1"
    assert outcome["first"]["took"] >= LONG_S - 1
    assert said(outcome["waited"]) == "1"


@pytest.mark.parametrize("peer", ["ors-sdk", "openreward"])
def test_a_prompt_waits_for_setup(reports: dict[str, Any], peer: str) -> None:
    outcome = value(reports[peer]["prompt during setup"])

    assert "(asked 1 time)" in value(outcome["first"])[0]["text"]
    assert outcome["first"]["took"] >= LONG_S - 1
    assert said(outcome["waited"]) == "0"


@pytest.mark.parametrize("peer", ["ors-sdk", "openreward"])
def test_pings_keep_an_idle_session(reports: dict[str, Any], peer: str) -> None:
    outcome = value(reports[peer]["idle"])

    assert (said(outcome["before"]), said(outcome["after"])) == ("1", "1")


@pytest.mark.parametrize("what", ["tool", "setup"])
def test_a_stream_begins_at_once_and_is_never_silent(reports: dict[str, Any], what: str) -> None:
    answer: Answer = reports["watched"][what]

    assert result_of(answer)["output"]["blocks"][0]["text"] == "1"
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    # what comes bit by bit may not be held back on its way
    assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-cache", "no")
    assert parse_events(answer.pieces[0])[0].name == "task_id"
    # the head and the id of the call do not wait for setup or for the tool
    assert max(answer.times[:2]) < 2
    silences = [after - before for before, after in zip(answer.times, answer.times[1:], strict=False)]
    assert max(silences) < 10.5
    assert len(answer.pieces) >= 4


def test_without_pings_a_session_ends(reports: dict[str, Any]) -> None:
    # the proof that the sessions above lived by their pings
    assert reports["forsaken"]["lived"] == ["made", "ready", "gone"]
    assert reports["forsaken"]["ping"] in (404, 410)
