"""The Task API as its guide describes it: each row of its tables, its split types, its errors."""

from __future__ import annotations

from typing import Any

import pytest

from ors.openenv.server import create_app
from served import Served

from .games import LIVES, Adder, Move, Rows, Seen

NOT = "is not supported for this environment"


def ask(served: Served, path: str, **body: Any) -> Any:
    answer = served.client.post(f"/rows{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_environments_are_listed_as_they_were_named(served: Served) -> None:
    assert served.client.get("/list_environments").json() == ["Adder", "Bare", "Rows", "Streamed", "Toolbox"]


def test_splits_are_normalised(served: Served) -> None:
    assert served.client.get("/Rows/splits").json() == [
        {"name": "train", "type": "train"},
        {"name": "test", "type": "test"},
        {"name": "holdout", "type": "validation"},
        {"name": "extra", "type": "train"},
    ]


def test_each_route_of_the_guide(served: Served) -> None:
    tasks = [{"id": f"train-{index}", "index": index} for index in range(5)]
    assert ask(served, "/tasks", split="train") == {"tasks": tasks, "env_name": "Rows"}
    assert ask(served, "/num_tasks", split="train") == {"num_tasks": 5}
    assert ask(served, "/task", split="train", index=3) == {"task": tasks[3]}
    assert ask(served, "/task_range", split="train", start=1, stop=3) == {"tasks": tasks[1:3]}
    assert ask(served, "/task_range", split="train", start=None) == {"tasks": tasks}
    assert ask(served, "/task_range", split="train", stop=100) == {"tasks": tasks}


@pytest.mark.parametrize("env", ["Rows", "rows", "ROWS"])
def test_names_match_whatever_their_case_and_answers_have_the_given_one(served: Served, env: str) -> None:
    answer = served.client.post(f"/{env}/tasks", json={"split": "test"}).json()
    assert answer["env_name"] == "Rows" and len(answer["tasks"]) == 2


def test_another_name_is_not_found(served: Served) -> None:
    for path in ("splits", "tasks", "num_tasks", "task", "task_range"):
        answer = served.client.request("GET" if path == "splits" else "POST", f"/nobody/{path}", json={"split": "a"})
        assert answer.status_code == 404


def test_what_a_method_cannot_do_is_not_supported(served: Served) -> None:
    counted = served.client.post("/streamed/num_tasks", json={"split": "train"})
    assert (counted.status_code, counted.json()["detail"]) == (501, f"num_tasks {NOT}")
    ranged = served.client.post("/streamed/task_range", json={"split": "train"})
    assert (ranged.status_code, ranged.json()["detail"]) == (
        501,
        "get_task_range is not supported for this environment",
    )
    listed = served.client.post("/streamed/tasks", json={"split": "train"})
    assert listed.status_code == 501


@pytest.mark.parametrize("index", [5, -1, 10**9])
def test_an_index_that_is_none_is_a_bad_request(served: Served, index: int) -> None:
    answer = served.client.post("/rows/task", json={"split": "train", "index": index})
    assert answer.status_code == 400 and answer.json()["kind"] == "invalid_index"


def test_an_unknown_split_is_a_bad_request_that_names_those_that_there_are(served: Served) -> None:
    for path, more in (("num_tasks", {}), ("tasks", {}), ("task", {"index": 0})):
        answer = served.client.post(f"/rows/{path}", json={"split": "tarin", **more})
        assert answer.status_code == 400 and "holdout" in answer.json()["detail"], path


def test_whatever_else_goes_wrong_is_told_as_json(served: Served) -> None:
    answer = served.client.post("/streamed/task", json={"split": "train", "index": 0})
    assert answer.status_code == 500 and "the stream broke" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("tasks", b"{}", ["body", "split"]),
        ("tasks", b'{"split": 3}', ["body", "split"]),
        ("num_tasks", b'{"split": "train", "more": 1}', ["body", "more"]),
        ("task", b'{"split": "train"}', ["body", "index"]),
        ("task", b'{"split": "train", "index": "x"}', ["body", "index"]),
        ("task_range", b'{"split": "train", "start": 0.5}', ["body", "start"]),
        ("task_range", b"", ["body"]),
        ("task_range", b"{", ["body", 1]),
    ],
)
def test_a_body_that_does_not_fit(served: Served, path: str, body: bytes, where: list[Any]) -> None:
    answer = served.client.post(f"/rows/{path}", content=body)
    assert answer.status_code == 422
    [fault] = answer.json()["detail"]
    assert fault["loc"] == where and "input" not in fault


def test_numbers_may_be_texts_as_openenv_reads_them(served: Served) -> None:
    assert ask(served, "/task", split="train", index="2")["task"]["index"] == 2


def test_discovery_starts_no_episode(served: Served) -> None:
    before = served.status()["opened"]
    ask(served, "/num_tasks", split="train")
    assert served.status()["opened"] == before
    assert LIVES["made"] > 0


def test_a_chosen_task_reaches_reset_by_its_names() -> None:
    class Chosen(Rows):
        def reset(  # type: ignore[override]
            self, split: str = "test", index: int | None = None, seed: int | None = None, episode_id: str | None = None
        ) -> Seen:
            return Seen(filling=[split, index, seed])

    running = Served([create_app(Chosen, Move, Seen, env_name="chosen_env")])
    try:
        told = running.client.post("/reset", json={"split": "train", "index": 12}).json()
        assert told["observation"]["filling"] == ["train", 12, None]
        assert running.client.post("/chosen_env/reset", json={}).json()["observation"]["filling"] == [
            "test",
            None,
            None,
        ]
        assert running.client.get("/list_environments").json() == ["chosen_env"]
    finally:
        running.stop()


def test_an_environment_without_tasks_has_seeds_beside_others_and_none_alone(served: Served) -> None:
    assert served.client.post("/adder/task", json={"split": "train", "index": 3}).status_code == 200
    app = create_app(Adder, Move, Seen)
    from fastapi.testclient import TestClient

    with TestClient(app) as alone:
        for path in ("tasks", "num_tasks", "task", "task_range"):
            answer = alone.post(
                f"/Adder/{path}", json={"split": "train", "index": 0} if path == "task" else {"split": "a"}
            )
            assert answer.status_code == 501, path
        assert alone.get("/Adder/splits").status_code == 501
