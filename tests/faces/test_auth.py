"""API keys: who has none learns nothing, and a session answers only to the key that made it."""

from __future__ import annotations

import hmac
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from ors import Server
from ors.errors import SettingsError
from ors.server.openapi import static_document
from served import Served

from .conftest import Serve
from .probes import Other, Probe
from .wire import Episode, Notes, client_of, events_of, failure_of, judged

KEYS = ["first-key", "second-key", "third-key"]
OPEN = ["/health", "/ready"]
ROUTES = [
    (method.upper(), path.replace("{env_name}", "probe").replace("{owner}", "o").replace("{name}", "n"))
    for path, methods in json.loads(static_document())["paths"].items()
    for method in methods
]


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(Probe, Other, api_keys=KEYS)


def with_key(served: Served, key: str | None) -> httpx.Client:
    headers = {"X-API-Key": key} if key is not None else {}
    return httpx.Client(base_url=served.url, headers=headers, event_hooks={"response": [judged(served)]}, timeout=30)


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[1] not in OPEN])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": ""},
        {"X-API-Key": "wrong"},
        {"X-API-Key": "first-ke"},
        {"X-API-Key": "first-key,second-key"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic first-key"},
        {"Authorization": "first-key"},
        {"X-API-Key": "wrong", "Authorization": "Bearer first-key"},
    ],
    ids=str,
)
def test_every_route_asks_for_a_key(served: Served, method: str, path: str, headers: dict[str, str]) -> None:
    answer = client_of(served).request(method, path, headers={"X-Session-ID": "s", **headers}, json={})
    assert failure_of(answer) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", OPEN)
def test_probes_need_no_key(served: Served, path: str) -> None:
    for headers in ({}, {"X-API-Key": "wrong"}):
        assert client_of(served).get(path, headers=headers).status_code == 200


def test_who_has_no_key_learns_nothing(served: Served) -> None:
    """Not which routes, environments or sessions there are, nor how a body would have to look."""
    client = client_of(served)
    with with_key(served, "first-key") as mine:
        episode = Episode(mine, {}).opened()
        answers = [
            client.request(method, path, headers={"X-Session-ID": sid}, content=body)
            for method in ("GET", "POST", "PUT")
            for path in ("/call", "/tools", "/probe/tools", "/nobody/tools", "/nothing", "/prompt", "/create")
            for sid in (episode.sid, "unknown")
            for body in (b"", b"{}", b"no json")
        ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({(answer.content, tuple(sorted(answer.headers.items()))) for answer in answers}) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"X-API-Key": "third-key"},
        {"Authorization": "Bearer third-key"},
        {"Authorization": "bearer  third-key"},
        {"X-API-Key": "", "Authorization": "Bearer third-key"},
        {"X-API-Key": "third-key", "Authorization": "Bearer wrong"},
    ],
    ids=str,
)
def test_a_key_as_header_or_as_token(served: Served, headers: dict[str, str]) -> None:
    assert client_of(served).get("/tools", headers=headers).status_code == 200


def test_every_key_is_compared_whichever_fits(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def counting(a: Any, b: Any) -> bool:
        compared.append((len(a), len(b)))
        return compare(a, b)

    monkeypatch.setattr("ors.server.auth.hmac.compare_digest", counting)
    for key in (*KEYS, "x", "a-key-that-is-much-longer-than-all-the-others"):
        compared.clear()
        client_of(served).get("/tools", headers={"X-API-Key": key})
        # nothing is told of a key by how long the comparison takes: not its place, not its length
        assert compared == [(32, 32)] * len(KEYS)


def test_a_session_answers_to_its_key_only(served: Served, tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    with with_key(served, "first-key") as mine, with_key(served, "second-key") as foreign:
        own = Episode(mine, notes.spec()).opened()
        call_id = events_of(own.call("count", task_id="one").content)[0].data
        theirs = Episode(foreign, sid=own.sid)
        for answer in (
            theirs.prompt(),
            theirs.task_tools(),
            theirs.call("count"),
            theirs.call("count", task_id=call_id),
            theirs.cancel(call_id),
            theirs.ping(),
            theirs.delete(),
            foreign.post("/delete_session", headers=own.headers),
        ):
            assert failure_of(answer) == (403, "forbidden")
            assert answer.json()["detail"] == "this session belongs to another key"
        assert failure_of(theirs.create()) == (400, "session_exists")
        assert notes.count("ran count") == 1 and notes.count("teardown") == 0
        assert own.text("count") == "2"


def test_a_foreign_key_does_not_join_a_create(served: Served) -> None:
    with with_key(served, "first-key") as mine, with_key(served, "second-key") as foreign:
        own = Episode(mine, {}).opened(**{"Idempotency-Key": "k"})
        theirs = Episode(foreign, {}, sid=own.sid)
        assert failure_of(theirs.create(**{"Idempotency-Key": "k"})) == (400, "session_exists")
        assert own.opened(**{"Idempotency-Key": "k"}).text("count") == "1"


def test_what_ended_is_told_to_its_key_only(served: Served) -> None:
    with with_key(served, "first-key") as mine, with_key(served, "second-key") as foreign:
        own = Episode(mine, {}).opened()
        own.delete()
        assert failure_of(own.prompt()) == (410, "session_ended")
        assert failure_of(Episode(foreign, sid=own.sid).prompt()) == (404, "unknown_session")


def test_one_key_sent_in_two_ways_is_one_key(served: Served) -> None:
    with with_key(served, "first-key") as mine, with_key(served, None) as other:
        episode = Episode(mine, {}).opened()
        headers = {**episode.headers, "Authorization": "Bearer first-key"}
        assert other.get("/prompt", headers=headers).status_code == 200


def test_without_keys_everybody_is_the_same(serve: Serve) -> None:
    client = client_of(serve(Probe, Other))
    episode = Episode(client, {}).opened(**{"X-API-Key": "mine"})
    episode.headers["X-API-Key"] = "yours"
    assert episode.text("count") == "1"


# Where keys come from


def test_keys_of_the_environment_and_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys"
    file.write_text("# of the trainers\n\n  from-file  \nsecond-from-file\n")
    monkeypatch.setenv("ORS_API_KEYS", "from-env, second-from-env,")
    monkeypatch.setenv("ORS_API_KEY_FILE", str(file))
    keys = Server([Probe]).settings.keys()
    assert keys == ("from-env", "second-from-env", "from-file", "second-from-file")
    assert Server([Probe], api_keys=["given"]).settings.keys()[0] == "given"


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "schlüssel\n", "a\x07b\n"])
def test_a_file_without_usable_keys_stops_the_server(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys"
    file.write_text(text)
    with pytest.raises(SettingsError, match="api_key_file: .* key"):
        Server([Probe], api_key_file=file)


def test_a_file_that_is_not_there_stops_the_server(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        Server([Probe], api_key_file=tmp_path / "nowhere")


@pytest.mark.parametrize("key", ["", "  ", "a b\n", "ключ"])
def test_a_key_that_no_header_can_carry_stops_the_server(key: str) -> None:
    with pytest.raises(SettingsError, match="api_keys"):
        Server([Probe], api_keys=[key])


def test_settings_do_not_show_keys() -> None:
    server = Server([Probe], api_keys=KEYS, id_key="also-a-secret")
    assert "first-key" not in repr(server.settings) and "also-a-secret" not in repr(server.settings)
    assert "first-key" not in repr(vars(server.application))
