"""Author code that does not stop: what is lost with it, what is not, and who is told what."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from ors import Server
from served import wait_until

from .conftest import Serve
from .hanging import Deaf, Stalling
from .probes import Probe
from .wire import Episode, Notes, client_of, error_of, failure_of, result_of


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


def test_a_thread_that_ignores_its_limit_is_counted_and_its_session_lost(serve: Serve, notes: Notes) -> None:
    served = serve(Deaf, Probe, fresh=True, call_timeout=0.2, cut_grace=0.2, max_zombies=2)
    client = client_of(served)
    episode = Episode(client, notes.spec()).opened()
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(episode.call, "ignore")
        notes.wait_for("ignores")
        queued = pool.submit(episode.call, "after")
        words, about = error_of(call.result())
        assert (words, about["kind"]) == ("'ignore' took longer than its limit of 0.2 s", "tool_timeout")
        # what waited behind it is told that the session is lost
        words, about = error_of(queued.result())
        assert "did not stop when it was cut; the session is lost" in words
        assert (about["kind"], about["ran"]) == ("tool_hung", "yes")
    wait_until(lambda: client.get("/ready").json()["zombies"] == ["ignore"])
    gone = episode.prompt()
    assert failure_of(gone) == (410, "session_ended")
    assert gone.json()["detail"] == "Session lost: a tool hung"
    notes.wait_for("teardown")
    # others go on
    assert Episode(client, {}, env="probe").opened().text("echo", text="on") == "on"
    assert client.get("/ready").status_code == 200
    second = Episode(client, notes.spec()).opened()
    error_of(second.call("ignore"))
    answer = wait_until(lambda: next((a for a in [client.get("/ready")] if a.status_code == 503), None))
    assert (answer.json()["kind"], answer.json()["ready"]) == ("worker_unavailable", False)
    # a zombie that ends after all is none any more
    notes.open("end")
    wait_until(lambda: client.get("/ready").json()["zombies"] == [])
    assert client.get("/ready").status_code == 200


def test_an_event_loop_that_is_blocked_for_good_is_given_up(serve: Serve, notes: Notes) -> None:
    served = serve(Stalling, Probe, fresh=True, blocked_warning=0.2, blocked_limit=0.6)
    client = client_of(served)
    blocking, innocent = Episode(client, notes.spec()).opened(), Episode(client, notes.spec()).opened()
    assert innocent.text("quick") == "quick"
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(blocking.call, "stall")
        notes.wait_for("stalls")
        waiting = pool.submit(innocent.call, "quick")
        for answer in (call.result(), waiting.result()):
            words, about = error_of(answer)
            assert about["kind"] == "loop_blocked"
            assert words.startswith("'stall' in ") and "blocked the event loop" in words
    for episode in (blocking, innocent):
        gone = episode.prompt()
        assert failure_of(gone) == (410, "session_ended")
        assert gone.json()["detail"] == "Session lost: its event loop was blocked"
    # new sessions get a new loop, and other environments had their own all the while
    assert Episode(client, notes.spec()).opened().text("quick") == "quick"
    assert Episode(client, {}, env="probe").opened().text("echo", text="on") == "on"
    notes.open("end")


def test_a_create_that_is_repeated_after_its_connection_broke(
    serve: Serve, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request is still under way, or its answer was lost: the repeat joins it."""
    monkeypatch.setenv("SHARED_FOLDER", str(notes.folder))
    client = client_of(serve(Stalling, Probe, fresh=True))
    episode = Episode(client, split="train", index=0)
    with pytest.raises(httpx.ReadTimeout):
        client.post("/create", json=episode.body, headers={**episode.headers, "Idempotency-Key": "k"}, timeout=0.3)
    assert notes.count("picks") == 1
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(episode.create, **{"Idempotency-Key": "k"})
        notes.open("pick")
        assert again.result().json() == {"sid": episode.sid}
    assert episode.prompt().status_code == 200
    assert (notes.count("picks"), notes.count("made")) == (1, 1)
    assert result_of(episode.call("quick"))["ok"] is True


def test_the_defaults_of_run_are_what_existing_code_expects() -> None:
    parameters = inspect.signature(Server.run).parameters
    assert (parameters["host"].default, parameters["port"].default) == ("0.0.0.0", 8080)
    assert list(inspect.signature(Server).parameters)[:2] == ["environments", "return_errors"]
