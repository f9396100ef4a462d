"""Sessions that nobody uses end, those in use do not; results and ids are kept for as long as is said."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ors.hosts.local import LocalHost
from served import Served, wait_until

from .conftest import Serve
from .probes import Probe, Slow
from .wire import Episode, Notes, client_of, error_of, events_of, failure_of


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


# On both hosts, with the real clock


def test_a_session_that_nobody_uses_ends(serve: Serve, notes: Notes) -> None:
    client = client_of(serve(Probe, Slow, session_idle=0.3))
    used = Episode(client, notes.spec()).opened()
    with used.begin("wait", {"gate": "g"}) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        idle = Episode(client, notes.spec(), env="slow").opened()
        notes.wait_for("gone")
        for answer in (idle.prompt(), idle.ping(), idle.call("quick")):
            assert failure_of(answer) == (410, "session_ended")
            assert answer.json()["detail"] == "Session expired"
        assert failure_of(idle.create())[0] == 410
        # the other has had as much time and a client that waits
        assert used.ping().status_code == 200
        notes.open("g")
        assert events_of(b"".join(pieces))[-1].name == "end"
    notes.wait_for("gone", times=2)
    assert failure_of(used.prompt()) == (410, "session_ended")


def test_many_end_side_by_side_and_one_that_hangs_holds_none(serve: Serve, notes: Notes) -> None:
    served = serve(Probe, Slow, session_idle=0.3, teardown_timeout=60)
    client = client_of(served)
    Episode(client, notes.spec(hold=["teardown"])).opened()
    for _ in range(10):
        Episode(client, notes.spec(hold=["teardown"]), env="slow").opened()
    notes.wait_for("teardown", times=11)
    late = Episode(client, notes.spec()).opened()
    notes.wait_for("gone")
    assert failure_of(late.prompt())[0] == 410
    notes.open("teardown")
    notes.wait_for("gone", times=12)


# With a clock that the test sets, in this process


class Clock:
    """Time that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Timed:
    """A server with such a clock."""

    def __init__(self, served: Served, clock: Clock) -> None:
        self.served = served
        self.client = client_of(served)
        self._clock = clock

    def wait(self, seconds: float) -> None:
        """Let time pass, and everything happen that is due."""
        self._clock.now += seconds

        async def sweep() -> None:
            self.served.host.sweep()

        self.served.on_loop(sweep)

    def alive(self, episode: Episode) -> bool:
        """Whether a session lives; asks nothing of it."""
        return episode.sid in self.served.host._sessions


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Timed]:
    clock = Clock()
    monkeypatch.setattr("ors.server.application.LocalHost", functools.partial(LocalHost, clock=clock))
    served = Served([Probe, Slow])
    yield Timed(served, clock)
    served.stop()


def test_a_quarter_of_an_hour(timed: Timed, notes: Notes) -> None:
    episode = Episode(timed.client, notes.spec()).opened()
    notes.wait_for("ready")
    timed.wait(899)
    assert timed.alive(episode)
    timed.wait(2)
    assert not timed.alive(episode)
    notes.wait_for("gone")


@pytest.mark.parametrize("use", ["ping", "prompt", "task_tools", "call"])
def test_every_use_is_activity(timed: Timed, use: str) -> None:
    episode = Episode(timed.client, {}).opened()
    uses: dict[str, Callable[[], httpx.Response]] = {
        "ping": episode.ping,
        "prompt": episode.prompt,
        "task_tools": episode.task_tools,
        "call": lambda: episode.call("count"),
    }
    for _ in range(4):
        timed.wait(600)
        assert uses[use]().status_code == 200
    timed.wait(901)
    assert not timed.alive(episode)


def test_what_is_no_activity(timed: Timed) -> None:
    """Requests under the wrong name, for tasks, or for other sessions keep nothing alive."""
    episode = Episode(timed.client, {}).opened()
    # the end of setup, which may come after the first of these, is the last activity
    for _ in range(5):
        timed.wait(300)
        timed.client.get("/slow/prompt", headers=episode.headers)
        timed.client.post("/tasks", json={"split": "train"}, headers=episode.headers)
        Episode(timed.client).ping()
    assert not timed.alive(episode)


def test_pings_for_nobody_leave_nothing(timed: Timed) -> None:
    before = timed.served.status()
    for number in range(200):
        answer = timed.client.post("/ping", headers={"X-Session-ID": f"nobody-{number}"})
        assert failure_of(answer) == (404, "unknown_session")
    assert timed.served.status() == before
    host = timed.served.host
    assert not host._sessions and not host._ended


def test_a_call_whose_client_waits_is_activity(timed: Timed, notes: Notes) -> None:
    episode = Episode(timed.client, notes.spec()).opened()
    with episode.begin("wait", {"gate": "g"}) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        for _ in range(10):
            timed.wait(600)
        assert timed.alive(episode)
        notes.open("g")
        assert events_of(b"".join(pieces))[-1].name == "end"


def test_a_call_whose_client_has_left_has_a_quarter_of_an_hour(timed: Timed, notes: Notes) -> None:
    episode = Episode(timed.client, notes.spec()).opened()
    with episode.begin("wait", {"gate": "g"}, "one") as stream:
        next(stream.iter_bytes())
        notes.wait_for("waits g")
        timed.wait(600)
    wait_until(lambda: timed.served.application.host._sessions[episode.sid]._calls.running["one"].attached() is False)
    timed.wait(1)  # when its leaving is noticed
    timed.wait(898)
    assert timed.alive(episode)
    timed.wait(3)
    assert not timed.alive(episode)
    notes.wait_for("cut g")
    notes.wait_for("gone")


def test_a_call_that_pings_stays(timed: Timed, notes: Notes) -> None:
    episode = Episode(timed.client, notes.spec()).opened()
    with episode.begin("wait", {"gate": "g"}, "one") as stream:
        next(stream.iter_bytes())
        notes.wait_for("waits g")
    for _ in range(5):
        timed.wait(600)
        assert episode.ping().status_code == 200
    notes.open("g")
    assert episode.call("wait", {"gate": "g"}, "one").status_code == 200


def test_no_call_keeps_a_session_for_ever(timed: Timed, notes: Notes) -> None:
    episode = Episode(timed.client, notes.spec()).opened()
    with episode.begin("wait", {"gate": "g"}) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        notes.wait_for("waits g")
        for _ in range(96):
            timed.wait(899)
            assert timed.alive(episode)
        for _ in range(3):
            timed.wait(899)
        assert not timed.alive(episode)
        last = events_of(b"".join(pieces))[-1]
    assert (last.name, last.data) == ("error", "Session expired")


def test_a_long_setup_is_no_idleness(timed: Timed, notes: Notes) -> None:
    episode = Episode(timed.client, notes.spec(hold=["setup"])).opened()
    for _ in range(5):
        timed.wait(899)
    assert timed.alive(episode)
    notes.open("setup")
    assert episode.prompt().status_code == 200


def test_results_are_kept_for_a_minute_and_ids_for_the_sessions_life(timed: Timed, notes: Notes) -> None:
    episode = Episode(timed.client, notes.spec()).opened()
    own = episode.call("count", task_id="one")
    issued = episode.call("count")
    issued_id = events_of(issued.content)[0].data
    timed.wait(59)
    assert episode.call("count", task_id="one").content == own.content
    assert episode.call("count", task_id=issued_id).content == issued.content
    timed.wait(2)
    words, about = error_of(episode.call("count", task_id="one"))
    assert words == "the call 'one' ran; its result is no longer kept"
    assert about == {"kind": "call_forgotten", "retryable": False, "ran": "yes"}
    forgotten = episode.call("count", task_id=issued_id)
    assert forgotten.content.endswith(b"event: error\r\ndata: unknown task_id\r\n\r\n")
    assert notes.count("ran count") == 2
    assert episode.cancel("one").json() == {"cancelled": False}


def test_room_for_results_comes_back(timed: Timed) -> None:
    episode = Episode(timed.client, {}).opened()
    for _ in range(50):
        episode.call("echo", {"text": "x" * 1000})
    assert timed.served.status()["result_bytes"] > 50_000
    timed.wait(61)
    assert timed.served.status()["result_bytes"] == 0


def test_what_ended_is_remembered_for_an_hour(timed: Timed) -> None:
    episode = Episode(timed.client, {}).opened()
    episode.delete()
    timed.wait(3599)
    assert failure_of(episode.prompt()) == (410, "session_ended")
    timed.wait(2)
    assert failure_of(episode.prompt()) == (404, "unknown_session")
    # its name is free again
    assert episode.opened().text("count") == "1"


def test_no_more_is_remembered_than_there_is_room_for(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalHost, "ENDED_KEPT", 3)
    episodes = [Episode(timed.client, {}).opened() for _ in range(6)]
    for episode in episodes:
        episode.delete()
    timed.wait(1)
    kinds: list[Any] = [failure_of(episode.prompt())[1] for episode in episodes]
    assert kinds == ["unknown_session"] * 3 + ["session_ended"] * 3
