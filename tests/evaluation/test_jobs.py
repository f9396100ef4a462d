"""Which episodes are played: the same every time, for every agent."""

from __future__ import annotations

from ors.evaluation import jobs_of
from ors.evaluation.jobs import key_of_task


def indices(**more: object) -> list[object]:
    return [job.key.task for job in jobs_of(["a"], "e", "test", 1000, **more)]  # type: ignore[arg-type]


def test_the_first_tasks_or_as_many_picked_at_random() -> None:
    assert indices() == list(range(1000))
    assert indices(limit=3) == [0, 1, 2]
    assert indices(limit=2000) == list(range(1000))
    picked = indices(limit=50, seed=1)
    assert picked == indices(limit=50, seed=1)
    assert len(set(picked)) == 50
    assert picked != sorted(picked)  # type: ignore[type-var]
    assert set(picked) != set(indices(limit=50, seed=2))
    assert sorted(indices(seed=1)) == list(range(1000))  # type: ignore[type-var]


def test_every_agent_plays_the_same_tasks_and_every_repeat_has_a_seed_of_its_own() -> None:
    jobs = list(jobs_of(["a", "b"], "e", "test", 10, limit=3, repeat=2, seed=7))
    assert len({job.key for job in jobs}) == 12
    of = {name: [(job.key.task, job.key.repeat, job.seed) for job in jobs if job.key.agent == name] for name in "ab"}
    assert of["a"] == of["b"]
    assert len({seed for _, _, seed in of["a"]}) == 6
    other = {job.seed for job in jobs_of(["a"], "other", "test", 10, limit=3, repeat=2, seed=7)}
    assert not other & {seed for _, _, seed in of["a"]}


def test_equal_tasks_have_equal_keys() -> None:
    assert key_of_task({"a": 1, "b": [2, "ö"]}) == key_of_task({"b": [2, "ö"], "a": 1})
    assert key_of_task({"a": 1}) != key_of_task({"a": 2})
    assert len(key_of_task({})) == 64
