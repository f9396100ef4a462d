"""SIGTERM: no new episodes, time for running calls, a reason for whoever still waits, teardown for all, exit code 0."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from ors import Server
from served import wait_until

from .probes import Probe
from .serving import Process
from .wire import Episode, Notes, events_of, failure_of


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    (tmp_path / "notes-of-it").mkdir()
    return Notes(tmp_path / "notes-of-it")


@pytest.fixture
def settings(host_process: str) -> dict[str, Any]:
    return {"host_process": {"local": "local", "remote": "spawned"}[host_process]}


def draining(client: httpx.Client) -> bool:
    return client.get("/ready").status_code == 503


def test_running_calls_end_and_nothing_new_begins(tmp_path: Path, notes: Notes, settings: dict[str, Any]) -> None:
    with Process(tmp_path, shutdown_grace=30, retry_after=4, **settings) as served:
        client = served.client
        episode = Episode(client, notes.spec()).opened()
        idle = Episode(client, notes.spec(), env="slow").opened()
        assert idle.text("quick") == "quick"
        with episode.begin("wait", {"gate": "g"}) as stream:
            pieces = stream.iter_bytes()
            next(pieces)
            notes.wait_for("waits g")
            served.send()
            wait_until(lambda: draining(client), what="draining")

            refused = Episode(client, {}).create()
            assert failure_of(refused) == (503, "draining")
            assert refused.headers["Retry-After"] == "4"
            assert refused.json()["retryable"] is True
            ready = client.get("/ready").json()
            assert (ready["kind"], ready["draining"], ready["ready"]) == ("draining", True, False)
            assert client.get("/health").json() == {"status": "ok"}
            assert episode.ping().status_code == 200
            assert notes.count("teardown") == 0

            notes.open("g")
            end = events_of(b"".join(pieces))[-1]
            assert end.name == "end" and '"text":"g"' in end.data
        assert served.process.wait(30) == 0
        assert notes.count("gone") == 2
        assert "shutting down: running calls have 30 s to end" in served.log


def test_who_still_waits_is_told_why(tmp_path: Path, notes: Notes, settings: dict[str, Any]) -> None:
    with Process(tmp_path, shutdown_grace=0.3, **settings) as served:
        episode = Episode(served.client, notes.spec()).opened()
        starting = Episode(served.client, notes.spec(hold=["setup"])).opened()
        with ThreadPoolExecutor(1) as pool, episode.begin("wait", {"gate": "never"}) as stream:
            pieces = stream.iter_bytes()
            next(pieces)
            notes.wait_for("waits never")
            notes.wait_for("setup", times=2)
            prompt = pool.submit(starting.prompt)
            wait_until(lambda: served.client.get("/ready").json()["calls"] >= 2)
            served.send()
            said = b"".join(pieces)
            assert failure_of(prompt.result()) == (503, "draining")
        comment, event = events_of(said, comments=True)[-2:]
        assert (event.name, event.data) == ("error", "the server is shutting down")
        assert comment.data == 'failure {"kind":"draining","retryable":true,"ran":"no"}'
        assert served.process.wait(30) == 0
        assert notes.words.index("cut never") < notes.words.index("teardown")
        assert notes.count("gone") == 2


def test_everything_is_torn_down(tmp_path: Path, notes: Notes, settings: dict[str, Any]) -> None:
    """SIGINT does the same."""
    with Process(tmp_path, **settings) as served:
        for count in range(10):
            env = "slow" if count % 2 else "probe"
            Episode(served.client, notes.spec(teardown_s=0.3), env=env).opened().prompt()
        Episode(served.client, notes.spec(fail="setup")).opened()
        notes.wait_for("gone")
        served.send(signal.SIGINT)
        assert served.process.wait(30) == 0
    assert notes.count("made") == notes.count("gone") == 11


def test_a_teardown_that_hangs_has_its_time_only(tmp_path: Path, notes: Notes, settings: dict[str, Any]) -> None:
    with Process(tmp_path, teardown_timeout=0.5, cut_grace=0.2, **settings) as served:
        Episode(served.client, notes.spec(hold=["teardown"])).opened().prompt()
        Episode(served.client, notes.spec(hold=["teardown"]), env="slow").opened().prompt()
        Episode(served.client, notes.spec()).opened().prompt()
        assert served.stop() == 0
    assert notes.count("teardown") == 3 and notes.count("gone") == 1


def test_a_second_signal_ends_the_grace(tmp_path: Path, notes: Notes, settings: dict[str, Any]) -> None:
    with Process(tmp_path, shutdown_grace=600, **settings) as served:
        episode = Episode(served.client, notes.spec()).opened()
        with episode.begin("wait", {"gate": "never"}) as stream:
            next(stream.iter_bytes())
            served.send()
            wait_until(lambda: draining(served.client), what="draining")
            # one that comes within a second is the same one again, sent to the group; the grace would be ten minutes
            time.sleep(1.1)
            assert served.process.poll() is None
            served.send()
            assert served.process.wait(30) == 0
    assert notes.count("teardown") == 1


def test_an_address_in_use_is_an_exit_code(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        program = "import sys; from faces.probes import Probe; from ors import Server; "
        program += "Server([Probe]).run('127.0.0.1', int(sys.argv[1]))"
        command = [sys.executable, "-c", program, str(taken.getsockname()[1])]
        run = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "in use" in run.stderr


def test_a_bind_in_public_without_keys_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What `run` says before it listens; it is kept from listening here."""
    import ors.server.run as module

    monkeypatch.setattr(module, "_serve", _not_serving)
    for host, keys, warned in (("0.0.0.0", [], True), ("0.0.0.0", ["key"], False), ("127.0.0.1", [], False)):
        caplog.clear()
        with pytest.raises(SystemExit):
            Server([Probe], api_keys=keys).run(host, 0)
        assert ("without API keys" in caplog.text) is warned


async def _not_serving(*_: Any) -> None:
    return None
