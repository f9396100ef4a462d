"""The Task API over ORS: splits, counts, single tasks and slices, however an author provides them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from .conftest import Serve
from .shelves import ALL
from .wire import Episode, client_of, failure_of

LISTED = ["plain", "waiting"]
PICKED = ["picked", "pickedlater", "sliced", "slicedlater"]


@pytest.fixture
def client(serve: Serve) -> httpx.Client:
    return client_of(serve(*ALL))


def tasks_of(split: str = "train", numbers: Any = range(7)) -> list[Any]:
    return [{"split": split, "number": number} for number in numbers]


def test_splits_have_types(client: httpx.Client) -> None:
    assert client.get("/plain/splits").json() == [
        {"name": "train", "type": "train"},
        {"name": "curious", "type": "validation"},
        {"name": "exam", "type": "test"},
        {"name": "validation", "type": "validation"},
    ]


@pytest.mark.parametrize("env", LISTED)
def test_tasks_are_all_tasks(client: httpx.Client, env: str) -> None:
    answer = client.post(f"/{env}/tasks", json={"split": "train"})
    assert answer.json() == {"tasks": tasks_of(), "env_name": env}


def test_the_environment_is_named_as_it_was_asked_for(client: httpx.Client) -> None:
    for path, spelt in (("/PLAIN", "PLAIN"), ("/Plain", "Plain"), ("", "plain")):
        for route, body in (("tasks", {}), ("task", {"index": 0}), ("task_range", {}), ("get_task", {"index": 0})):
            answer = client.post(f"{path}/{route}", json={"split": "train", **body})
            assert answer.json()["env_name"] == spelt, route


@pytest.mark.parametrize("env", [*LISTED, *PICKED])
def test_num_tasks(client: httpx.Client, env: str) -> None:
    answer = client.post(f"/{env}/num_tasks", json={"split": "train"})
    assert (answer.status_code, answer.json()) == (200, {"num_tasks": 7})


@pytest.mark.parametrize("env", [*LISTED, *PICKED])
@pytest.mark.parametrize("route", ["task", "get_task"])
def test_one_task(client: httpx.Client, env: str, route: str) -> None:
    answer = client.post(f"/{env}/{route}", json={"split": "train", "index": 6})
    assert answer.json() == {"task": {"split": "train", "number": 6}, "env_name": env}


@pytest.mark.parametrize("env", [*LISTED, *PICKED])
@pytest.mark.parametrize("index", [-1, -7, 7, 10**9])
def test_an_index_outside_is_refused(client: httpx.Client, env: str, index: int) -> None:
    answer = client.post(f"/{env}/task", json={"split": "train", "index": index})
    assert failure_of(answer) == (400, "invalid_index")
    created = Episode(client, env=env, split="train", index=index).create()
    assert failure_of(created) == (400, "invalid_index")


RANGES = [
    (None, None),
    (2, 5),
    (5, 2),
    (3, 3),
    (None, 2),
    (5, None),
    (-2, None),
    (None, -2),
    (-100, 100),
    (6, 7),
    (7, 9),
]
RANGES += [(-3, -1), (-1, -3), (2, -2), (-2, 6), (100, 200), (-200, -100)]


@pytest.mark.parametrize("env", [*LISTED, *PICKED])
@pytest.mark.parametrize(("start", "stop"), RANGES)
def test_a_range_is_a_slice_and_never_an_error(client: httpx.Client, env: str, start: Any, stop: Any) -> None:
    bounds = {name: bound for name, bound in (("start", start), ("stop", stop)) if bound is not None}
    answer = client.post(f"/{env}/task_range", json={"split": "train", **bounds})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"tasks": tasks_of(numbers=range(7)[slice(start, stop)]), "env_name": env}
    with_nulls = client.post(f"/{env}/get_task_range", json={"split": "train", "start": start, "stop": stop})
    assert with_nulls.json() == answer.json()


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("tasks", {}),
        ("num_tasks", {}),
        ("task", {"index": 0}),
        ("get_task", {"index": 0}),
        ("task_range", {}),
        ("get_task_range", {}),
    ],
)
@pytest.mark.parametrize("env", ["plain", "picked"])
def test_an_unknown_split_is_400_and_names_the_splits(
    client: httpx.Client, env: str, route: str, body: dict[str, Any]
) -> None:
    answer = client.post(f"/{env}/{route}", json={"split": "Train", **body})
    assert failure_of(answer) == (400, "unknown_split")
    assert answer.json()["detail"].startswith("Invalid split 'Train'; the splits are train")


def test_an_unknown_split_opens_nothing(client: httpx.Client) -> None:
    episode = Episode(client, split="nowhere", index=0)
    assert failure_of(episode.create()) == (400, "unknown_split")
    assert failure_of(episode.prompt()) == (404, "unknown_session")
    # the id is as good as new
    episode.body["split"] = "exam"
    episode.opened().delete()


@pytest.mark.parametrize("env", [*PICKED, "endless"])
def test_tasks_that_cannot_be_listed(client: httpx.Client, env: str) -> None:
    answer = client.post(f"/{env}/tasks", json={"split": "train"})
    assert failure_of(answer) == (501, "not_supported")
    # harnesses look for these words
    assert "index-based API" in answer.json()["detail"]


def test_tasks_without_end(client: httpx.Client) -> None:
    assert failure_of(client.post("/endless/num_tasks", json={"split": "train"})) == (501, "not_supported")
    answer = client.post("/endless/task", json={"split": "train", "index": 10**15})
    assert answer.json()["task"] == {"number": 10**15}
    some = client.post("/endless/task_range", json={"split": "train", "start": 5, "stop": 7})
    assert some.json()["tasks"] == [{"number": 5}, {"number": 6}]
    some = client.post("/endlesslater/task_range", json={"split": "train", "start": 5, "stop": 70})
    assert some.json()["tasks"] == [{"number": 5}, {"number": 6}]
    too_many = client.post("/endless/task_range", json={"split": "train", "start": 0, "stop": 10**12})
    assert failure_of(too_many) == (400, "invalid_index")
    for bounds in ({}, {"start": 5}, {"stop": -1}, {"start": -3, "stop": 5}):
        answer = client.post("/endless/task_range", json={"split": "train", **bounds})
        assert failure_of(answer) == (501, "not_supported"), bounds


def test_a_long_list_comes_whole(client: httpx.Client) -> None:
    answer = client.post("/many/tasks", json={"split": "train"})
    tasks = answer.json()["tasks"]
    assert len(answer.content) > 2_000_000
    assert [task["number"] for task in tasks] == list(range(20_000))


def test_a_client_that_leaves_a_long_list_hurts_nobody(client: httpx.Client) -> None:
    with client.stream("POST", "/many/tasks", json={"split": "train"}) as answer:
        next(answer.iter_bytes(1000))
    assert client.post("/many/num_tasks", json={"split": "train"}).json() == {"num_tasks": 20_000}


def test_tasks_in_the_shapes_that_people_have_them_in(client: httpx.Client) -> None:
    tasks = client.post("/values/tasks", json={"split": "train"}).json()["tasks"]
    assert tasks == [
        {"day": "2024-02-29", "price": "1.10", "colour": "red"},
        {"nested": {"name": "Ada"}, "path": "a/b"},
        {"name": "Ada"},
        {"city": "Oslo"},
        {"tuple": [1, 2]},
    ]
    for index, task in enumerate(tasks):
        answer = client.post("/values/task", json={"split": "train", "index": index})
        assert answer.json()["task"] == task


def test_a_task_that_cannot_be_json_holds_its_place(client: httpx.Client) -> None:
    for answer in (
        client.post("/broken/tasks", json={"split": "train"}),
        client.post("/broken/task_range", json={"split": "train"}),
    ):
        tasks = answer.json()["tasks"]
        assert (tasks[0], tasks[3]) == ({"number": 0}, {"number": 3})
        assert list(tasks[1]) == list(tasks[2]) == ["error"]
        assert "$.score" in tasks[1]["error"]
    assert client.post("/broken/num_tasks", json={"split": "train"}).json() == {"num_tasks": 4}


@pytest.mark.parametrize("index", [1, 2])
def test_a_task_that_cannot_be_json_cannot_be_had(client: httpx.Client, index: int) -> None:
    answer = client.post("/broken/task", json={"split": "train", "index": index})
    assert failure_of(answer) == (500, "bad_task")
    assert f"task {index} of split 'train'" in answer.json()["detail"]
    assert failure_of(Episode(client, env="broken", split="train", index=index).create()) == (500, "bad_task")


def test_what_an_author_raises(client: httpx.Client) -> None:
    answer = client.post("/failing/tasks", json={"split": "train"})
    assert failure_of(answer) == (500, "task_failed")
    assert answer.json()["detail"] == "OSError: the disk is gone"
    # an IndexError is the client's only where an index was asked for
    assert failure_of(client.post("/failing/num_tasks", json={"split": "train"})) == (500, "task_failed")


@pytest.mark.parametrize("env", ["splitless", "twice"])
def test_splits_that_are_none(client: httpx.Client, env: str) -> None:
    assert failure_of(client.get(f"/{env}/splits")) == (500, "bad_splits")
    assert failure_of(client.post(f"/{env}/tasks", json={"split": "train"})) == (500, "bad_splits")


def test_a_list_that_is_none(client: httpx.Client) -> None:
    answer = client.post("/nolist/tasks", json={"split": "train"})
    assert failure_of(answer) == (500, "task_failed")
    assert answer.json()["detail"] == "NoList.list_tasks returned dict; return a list"


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("tasks", {}),
        ("tasks", {"split": 1}),
        ("tasks", {"split": None}),
        ("tasks", {"split": "train", "page": 1}),
        ("task", {"split": "train"}),
        ("task", {"split": "train", "index": "0"}),
        ("task", {"split": "train", "index": True}),
        ("task", {"split": "train", "index": 0.5}),
        ("task", {"split": "train", "index": None}),
        ("task_range", {"split": "train", "start": "0"}),
        ("task_range", {"split": "train", "step": 2}),
        ("num_tasks", []),
    ],
)
def test_bodies_that_do_not_fit(client: httpx.Client, route: str, body: Any) -> None:
    assert failure_of(client.post(f"/plain/{route}", json=body)) == (422, "invalid_request")


def test_a_whole_float_is_an_integer(client: httpx.Client) -> None:
    answer = client.post("/plain/task", content=b'{"split":"train","index":3.0}')
    assert answer.json()["task"]["number"] == 3


def test_integers_arrive_digit_for_digit(client: httpx.Client) -> None:
    """An index of any length is an index outside; over 4,300 digits it is no integer that a server should read."""
    body = b'{"split":"train","index":%s}'
    assert failure_of(client.post("/plain/task", content=body % (b"9" * 4300))) == (400, "invalid_index")
    assert failure_of(client.post("/picked/task", content=body % (b"9" * 400))) == (400, "invalid_index")
    assert failure_of(client.post("/plain/task", content=body % (b"9" * 4301))) == (400, "invalid_json")
    answer = client.post("/plain/task_range", content=b'{"split":"train","stop":-%s}' % (b"9" * 30))
    assert answer.json()["tasks"] == []


@pytest.mark.parametrize("errors", ["none", "stacktrace"])
def test_how_much_is_told(serve: Serve, errors: str) -> None:
    client = client_of(serve(*ALL, return_errors=errors))
    detail = client.post("/failing/tasks", json={"split": "train"}).json()["detail"]
    if errors == "none":
        assert detail == "Internal Server Error"
    else:
        assert detail.startswith("Traceback") and detail.endswith("OSError: the disk is gone")
        assert Path(__file__).with_name("shelves.py").name in detail


def test_documents_are_compact_json(client: httpx.Client) -> None:
    for route, body in (("tasks", {}), ("task", {"index": 1}), ("num_tasks", {}), ("task_range", {"stop": 1})):
        answer = client.post(f"/plain/{route}", json={"split": "train", **body})
        assert answer.content.decode() == json.dumps(answer.json(), ensure_ascii=False, separators=(",", ":"))
        assert answer.headers["content-type"] == "application/json"
