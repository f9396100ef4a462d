"""Lists of any size over HTTP: at once, in constant memory, beside other sessions; previews, tags and compression."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from ors.tasks import task_key
from served import Served, wait_until

from .conftest import Serve
from .wire import Episode, client_of, failure_of

ROWS = [{"n": number, "text": f"row {number}"} for number in range(3000)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that the environments know; they are in a module that is imported when it is there."""
    path = tmp_path_factory.mktemp("sources")
    (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    before = os.environ.get("ORS_TEST_FOLDER")
    os.environ["ORS_TEST_FOLDER"] = str(path)
    yield path
    if before is None:
        del os.environ["ORS_TEST_FOLDER"]


@pytest.fixture(scope="module")
def served(serve: Serve, folder: Path) -> Served:
    sources = importlib.reload(importlib.import_module("faces.sources"))
    return serve(*sources.ALL)


@pytest.fixture
def client(served: Served) -> httpx.Client:
    return client_of(served)


def ask(client: httpx.Client, env: str, route: str = "tasks", headers: Any = None, **body: Any) -> httpx.Response:
    wanted = {"accept-encoding": "identity", **(headers or {})}
    return client.post(f"/{env}/{route}", json={"split": "train", **body}, headers=wanted)


def test_a_declared_file_is_listed_counted_and_picked(client: httpx.Client) -> None:
    assert ask(client, "rows").json() == {"tasks": ROWS, "env_name": "rows"}
    assert ask(client, "rows", "num_tasks").json() == {"num_tasks": 3000}
    assert ask(client, "rows", "task", index=2999).json()["task"] == ROWS[-1]
    assert ask(client, "rows", "task_range", start=-700).json()["tasks"] == ROWS[-700:]
    assert failure_of(ask(client, "rows", "task", index=3000)) == (400, "invalid_index")


def test_a_preview_says_that_it_is_one(client: httpx.Client) -> None:
    answer = ask(client, "preview").json()
    assert (len(answer["tasks"]), answer["truncated"], answer["env_name"]) == (7, True, "preview")
    assert "truncated" not in ask(client, "large").json()
    assert ask(client, "preview", "num_tasks").json() == {"num_tasks": 5000}
    assert len(ask(client, "preview", "task_range").json()["tasks"]) == 5000


def test_tasks_without_an_end(client: httpx.Client) -> None:
    answer = ask(client, "endless")
    assert failure_of(answer) == (501, "not_supported")
    assert "index-based API" in answer.json()["detail"]
    assert failure_of(ask(client, "endless", "num_tasks")) == (501, "not_supported")
    assert ask(client, "endless", "task_range", start=1, stop=3).json()["tasks"] == [{"seed": 1}, {"seed": 2}]
    for bounds in ({}, {"start": 5}, {"stop": -1}, {"start": -3, "stop": 5}):
        assert failure_of(ask(client, "endless", "task_range", **bounds)) == (501, "not_supported"), bounds
    answer = ask(client, "endlesspreview").json()
    assert answer == {"tasks": [{"seed": 0}, {"seed": 1}, {"seed": 2}], "truncated": True, "env_name": "endlesspreview"}


def test_a_stream_says_what_it_can(client: httpx.Client) -> None:
    assert ask(client, "streamed").json()["tasks"] == [{"n": number} for number in range(1000)]
    for answer in (ask(client, "streamed", "task", index=0), ask(client, "streamed", "task_range", start=0, stop=1)):
        assert failure_of(answer) == (501, "not_supported")
        assert answer.json()["detail"] == "a stream has no places; list its tasks"
    assert "they can be listed" in ask(client, "streamed", "num_tasks").json()["detail"]


def test_the_first_tasks_come_at_once_and_other_sessions_go_on(client: httpx.Client, folder: Path) -> None:
    """The list waits at its second task; nobody else does."""
    with (
        httpx.Client(base_url=client.base_url) as plain,
        plain.stream("POST", "/waiting/tasks", json={"split": "train"}, headers={"accept-encoding": "gzip"}) as answer,
    ):
        read = answer.iter_bytes()
        assert next(read).startswith(b'{"tasks":[{"n":0}')
        with httpx.Client(base_url=client.base_url) as other:
            for env in ("waiting", "rows"):
                episode = Episode(other, env=env, task={}).opened()
                assert episode.text("go") == "gone"
            assert ask(other, "rows", "num_tasks").json() == {"num_tasks": 3000}
    # the client has left: nobody reads on to the end
    (folder / "gate").touch()
    asked = folder / "asked"
    last = [-1, 0]

    def quiet() -> bool:
        last[:] = [last[1], asked.stat().st_size]
        time.sleep(0.1)
        return last[0] == last[1]

    wait_until(quiet, what="the end of reading")
    assert len(asked.read_text().splitlines()) < 100_000


@pytest.mark.parametrize("accepted", ["identity", "gzip", "zstd"])
def test_a_list_that_breaks_off_is_not_taken_for_the_whole(client: httpx.Client, accepted: str) -> None:
    with (
        httpx.Client(base_url=client.base_url) as plain,
        plain.stream(
            "POST", "/breaking/tasks", json={"split": "train"}, headers={"accept-encoding": accepted}
        ) as answer,
    ):
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            for _ in answer.iter_raw():
                pass
    # of a range nothing has been sent when it fails
    assert failure_of(ask(client, "breaking", "task_range", start=6000, stop=6001)) == (500, "task_failed")
    assert ask(client, "breaking", "task", index=9000).json()["task"] == {"n": 9000}


@pytest.mark.parametrize(
    ("env", "route", "body"),
    [
        ("rows", "tasks", {}),
        ("rows", "task", {"index": 5}),
        ("rows", "task_range", {"start": 0, "stop": 2000}),
        ("memory", "num_tasks", {}),
        ("large", "task_range", {"stop": 10}),
    ],
)
def test_an_answer_that_is_known_is_not_sent_again(
    client: httpx.Client, env: str, route: str, body: dict[str, Any]
) -> None:
    first = ask(client, env, route, **body)
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    for known in (tag, tag.removeprefix("W/"), f'"x", {tag}', "*"):
        again = ask(client, env, route, {"if-none-match": known}, **body)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert ask(client, env, route, {"if-none-match": '"other"'}, **body).content == first.content
    packed = ask(client, env, route, {"accept-encoding": "gzip"}, **body)
    assert packed.headers["etag"] == tag


def test_a_tag_is_of_one_answer(client: httpx.Client) -> None:
    tags = {ask(client, *wanted).headers["etag"] for wanted in (("rows",), ("ROWS",), ("rows", "num_tasks"))}
    assert len(tags) == 3
    splits = client.get("/memory/splits")
    known = client.get("/memory/splits", headers={"if-none-match": splits.headers["etag"]})
    assert known.status_code == 304
    # of tasks in memory nobody can tell whether they have changed
    assert "etag" not in ask(client, "memory").headers
    assert failure_of(ask(client, "rows", "task", {"if-none-match": "*"}, index=-1)) == (400, "invalid_index")


def test_a_file_that_was_changed_has_another_tag(client: httpx.Client, folder: Path) -> None:
    tag = ask(client, "rows").headers["etag"]
    file = folder / "rows.jsonl"
    text = file.read_text()
    try:
        beside = folder / "beside"
        beside.write_text(text + '{"n": 3000}\n')
        beside.replace(file)
        changed = ask(client, "rows", "tasks", {"if-none-match": tag})
        assert changed.status_code == 200 and len(changed.json()["tasks"]) == 3001
        assert changed.headers["etag"] != tag
    finally:
        file.write_text(text)


def raw(client: httpx.Client, env: str, route: str, accepted: str, **body: Any) -> tuple[httpx.Headers, bytes]:
    with (
        httpx.Client(base_url=client.base_url) as plain,
        plain.stream(
            "POST", f"/{env}/{route}", json={"split": "train", **body}, headers={"accept-encoding": accepted}
        ) as answer,
    ):
        assert answer.status_code == 200
        return answer.headers, b"".join(answer.iter_raw())


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", None),
        ("identity", None),
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
        ("br, gzip;q=0.5", "gzip"),
        ("zstd", "zstd"),
        ("gzip, zstd", "zstd"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0.1, gzip;q=0.9", "gzip"),
        ("zstd;q=0, gzip", "gzip"),
        ("*", "gzip"),
        ("gzip;q=0, *", None),
        ("gzip;q=0.2, identity", None),
        ("gzip;q=nonsense", None),
        ("gzip;q=7", None),
        ("deflate, br", None),
        (";;;,,,=", None),
    ],
)
def test_answers_are_packed_as_the_client_takes_it(client: httpx.Client, accepted: str, coding: str | None) -> None:
    plain = ask(client, "large").content
    part = ask(client, "large", "task_range", stop=900).content
    for route, body, expected in (("tasks", {}, plain), ("task_range", {"stop": 900}, part)):
        headers, packed = raw(client, "large", route, accepted, **body)
        assert headers["vary"] == "accept-encoding"
        assert headers.get("content-encoding") == coding, route
        assert unpacked(packed, coding) == expected
        assert coding is None or len(packed) < len(expected) / 4


def unpacked(data: bytes, coding: str | None) -> bytes:
    if coding == "gzip":
        return gzip.decompress(data)
    if coding == "zstd":
        return bytes(importlib.import_module("backports.zstd").decompress(data))
    return data


def test_short_answers_are_sent_as_they_are(client: httpx.Client) -> None:
    headers, body = raw(client, "large", "task", "gzip, zstd", index=0)
    assert "content-encoding" not in headers and headers["vary"] == "accept-encoding"
    assert json.loads(body)["task"]["n"] == 0


@pytest.mark.parametrize(("index", "key"), [(0, "a b/ß"), (1, "plain")])
def test_creating_says_which_task_it_is(client: httpx.Client, index: int, key: str) -> None:
    created = Episode(client, env="memory", split="train", index=index).create()
    assert unquote(created.headers["x-ors-task-key"]) == key
    created = Episode(client, env="memory", task={"id": "mine"}).create()
    assert created.headers["x-ors-task-key"] == "mine"
    created = Episode(client, env="rows", split="train", index=3).create()
    assert created.headers["x-ors-task-key"] == task_key(ROWS[3])
    assert "task_keys" in client.get("/version").json()["capabilities"]


def test_many_lists_at_once(client: httpx.Client) -> None:
    expected = ask(client, "large").content
    found: list[bytes] = []

    def read() -> None:
        with httpx.Client(base_url=client.base_url) as own:
            found.append(ask(own, "large").content)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8
