"""The task methods of OpenEnv environments, as the guide of the Task API has them, and what it leaves open."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import pydantic
import pytest

from openenv_authoring.play import staged
from ors.adapters.openenv_environment import OpenEnvOffering
from ors.core.ports import TaskRef
from ors.openenv import Action, Environment, Observation, State

pytestmark = pytest.mark.anyio

SIZES = {"train": 5, "test": 3, "holdout": 2}


class Bare(Environment[Any, Any, Any]):
    """It says what its episodes are about."""

    made: list[Bare] = []

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self.thread = threading.get_ident()
        type(self).made.append(self)

    def reset(self, seed: int | None = None, split: str = "test", index: int | None = None) -> Observation:
        return Observation(metadata={"split": split, "index": index, "seed": seed})

    def step(self, action: Action) -> Observation:
        return Observation()

    @property
    def state(self) -> State:
        return State()

    def close(self) -> None:
        assert not self.closed
        assert threading.get_ident() == self.thread, "closed on another thread"
        self.closed = True


class Tasks(Bare):
    def list_splits(self) -> Any:
        return list(SIZES)

    def num_tasks(self, split: str) -> int:
        return SIZES[split]

    def list_tasks(self, split: str) -> Any:
        return [{"id": f"{split}-{index}"} for index in range(SIZES[split])][:2]

    def get_task(self, split: str, index: int) -> Any:
        if index == 1:
            raise IndexError("none at 1")
        return {"id": f"{split}-{index}", "index": index, "split": split}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> Any:
        return [{"id": f"{split}-{index}"} for index in range(SIZES[split])][start:stop]


@pytest.fixture(autouse=True)
def all_are_closed() -> Iterator[None]:
    Bare.made.clear()
    yield
    assert Bare.made and all(env.closed for env in Bare.made)


def offered(cls: Any, **options: Any) -> OpenEnvOffering:
    return OpenEnvOffering(cls, Action, Observation, **options)


async def test_each_method_is_asked_of_an_instance_made_for_it() -> None:
    async with staged(offered(Tasks)) as stage:
        assert await stage.query("splits") == [
            {"name": "train", "type": "train"},
            {"name": "test", "type": "test"},
            {"name": "holdout", "type": "validation"},
        ]
        assert await stage.query("count", "train") == 5
        assert await stage.query("get", "train", 2) == {"id": "train-2", "index": 2, "split": "train"}
        assert await stage.listed("train") == [{"id": "train-0"}, {"id": "train-1"}]
        assert await stage.query("range", "train", start=1, stop=3) == [{"id": "train-1"}, {"id": "train-2"}]
        assert len(await stage.query("range", "train")) == 5
        assert len(await stage.query("range", "test", stop=99)) == 3
        assert len(Bare.made) >= 6


async def test_an_index_that_is_none_is_refused() -> None:
    async with staged(offered(Tasks)) as stage:
        for index, words in ((-1, "start at 0"), (5, "has 5 tasks"), (1, "none at 1")):
            wrong = await stage.query("get", "train", index)
            assert (wrong.kind, wrong.status) == ("invalid_index", 400)
            assert wrong.detail.startswith("Invalid task index") and words in wrong.detail


async def test_bounds_below_0_count_from_the_end() -> None:
    async with staged(offered(Tasks)) as stage:
        assert await stage.query("range", "train", start=-2) == [{"id": "train-3"}, {"id": "train-4"}]
        assert await stage.query("range", "train", stop=-4) == [{"id": "train-0"}]
        assert await stage.query("range", "train", start=-9, stop=-9) == []


async def test_an_unlisted_split_is_refused_with_those_that_there_are() -> None:
    async with staged(offered(Tasks)) as stage:
        for query in (("count", "dev"), ("get", "dev", 0), ("range", "dev")):
            wrong = await stage.query(*query)
            assert (wrong.kind, wrong.status) == ("unknown_split", 400)
            assert "train, test, holdout" in wrong.detail
        assert (await stage.listed("dev")).kind == "unknown_split"


async def test_methods_that_are_missing_or_not_implemented_are_not_supported() -> None:
    class Some(Bare):
        def num_tasks(self, split: str) -> int:
            raise NotImplementedError("streams have no end")

        def get_task(self, split: str, index: int) -> Any:
            return index

    async with staged(offered(Some)) as stage:
        wrong = await stage.query("count", "any")
        assert (wrong.kind, wrong.status) == ("not_supported", 501)
        assert wrong.detail == "num_tasks is not supported for this environment"
        assert (await stage.query("splits")).detail == "list_splits is not supported for this environment"
        assert (await stage.query("range", "any")).kind == "not_supported"
        assert (await stage.listed("any")).kind == "not_supported"
        assert await stage.query("get", "any", 7) == 7


async def test_other_errors_are_the_environments() -> None:
    class Broken(Tasks):
        def num_tasks(self, split: str) -> Any:
            return "many" if split == "train" else 1 / 0

        def list_tasks(self, split: str) -> Any:
            return {"a": "mapping"}

    async with staged(offered(Broken)) as stage:
        assert "many" in (await stage.query("count", "train")).detail
        wrong = await stage.query("count", "test")
        assert (wrong.kind, wrong.status) == ("task_failed", 500) and "division by zero" in wrong.detail
        assert "returned dict" in (await stage.listed("train")).detail


async def test_asynchronous_methods_and_tasks_of_every_type() -> None:
    class Model(pydantic.BaseModel):
        number: int

    @dataclasses.dataclass
    class Data:
        number: int

    class Object:
        def __init__(self) -> None:
            self.number = 3

    class Different(Bare):
        async def list_splits(self) -> Any:
            await asyncio.sleep(0)
            return [Split(name="a", kind=1), {"name": "b", "type": "test", "size": 4}, "validation", 7]

        async def num_tasks(self, split: str) -> int:
            return 6

        async def get_task_range(self, split: str, start: Any = None, stop: Any = None) -> Any:
            return [Model(number=1), Data(2), Object(), "four", 5, {"nan": float("nan")}][start:stop]

        async def get_task(self, split: str, index: int) -> Any:
            return (await self.get_task_range(split))[index]

    class Split(pydantic.BaseModel):
        name: str
        kind: int

    async with staged(offered(Different)) as stage:
        assert await stage.query("splits") == [
            {"name": "a", "kind": 1},
            {"name": "b", "type": "test", "size": 4},
            {"name": "validation", "type": "validation"},
            {"name": "7", "type": "validation"},
        ]
        assert await stage.query("count", "b") == 6
        tasks = await stage.query("range", "b")
        assert tasks[:5] == [{"number": 1}, {"number": 2}, {"number": 3}, "four", 5]
        assert "$.nan" in tasks[5]["error"]  # it holds its place
        assert await stage.query("get", "b", 2) == {"number": 3}
        wrong = await stage.query("get", "b", 5)
        assert wrong.kind == "bad_task" and "$.nan" in wrong.detail


async def test_without_task_methods_there_are_seeds() -> None:
    async with staged(offered(Bare)) as stage:
        session = await stage.open()
        assert (await session.reset(seed=2))["observation"]["metadata"]["seed"] == 2
        assert [split["name"] for split in await stage.query("splits")] == ["train", "test"]


async def test_kept_instances_are_made_once_and_closed_at_the_end() -> None:
    class Kept(Tasks):
        REUSE_FOR_TASKS = True
        made: list[Bare] = Bare.made

        def close(self) -> None:
            self.closed = True

    async with staged(offered(Kept)) as stage:
        for index in (0, 2, 3, 4):
            assert (await stage.query("get", "train", index))["index"] == index
        await asyncio.gather(*[stage.query("count", "train") for _ in range(20)])
        assert len(Bare.made) <= 21 and not any(env.closed for env in Bare.made)
        before = len(Bare.made)
        for _ in range(5):
            await stage.query("count", "train")
        assert len(Bare.made) == before


async def test_a_task_chosen_by_its_place_is_told_to_reset_in_its_own_words() -> None:
    class ByName(Tasks):
        def reset(self, id: str = "none", **_: Any) -> Observation:
            return Observation(metadata={"id": id, "more": sorted(_)})

    class InFull(Tasks):
        def reset(self, task_spec: Any = None) -> Observation:
            return Observation(metadata={"task": task_spec})

    class Fields(Tasks):
        def reset(self, id: str = "none") -> Observation:
            return Observation(metadata={"id": id})

    seen = {}
    for cls in (Tasks, InFull, Fields, ByName):
        async with staged(offered(cls)) as stage:
            session = await stage.open(kind=None, ref=TaskRef("train", 3))
            reset = await session.ask("reset", start=_start(TaskRef("train", 3)))
            seen[cls.__name__] = reset["observation"]["metadata"]
    assert seen["Tasks"] == {"split": "train", "index": 3, "seed": None}
    assert seen["InFull"] == {"task": {"id": "train-3", "index": 3, "split": "train"}}
    assert seen["Fields"] == {"id": "train-3"}
    assert seen["ByName"] == {"id": "none", "more": ["index", "split"]}


def _start(ref: TaskRef) -> Any:
    from ors.core.ports import Start

    return Start(ref=ref)


async def test_a_slow_constructor_delays_nobody_else() -> None:
    gate = threading.Event()
    inside = threading.Event()

    class Slow(Tasks):
        def __init__(self) -> None:
            super().__init__()
            if not inside.is_set():
                inside.set()
                gate.wait(20)

    async with staged(offered(Slow)) as stage:
        slow = asyncio.ensure_future(stage.query("count", "train"))
        while not inside.is_set():
            await asyncio.sleep(0.005)
        assert await stage.query("count", "test") == 3  # while the other instance is still being made
        assert not slow.done()
        gate.set()
        assert await slow == 5


async def test_what_cannot_be_counted_or_split_can_still_be_picked() -> None:
    class Stream(Tasks):
        def list_splits(self) -> Any:
            raise OSError("the hub is down")

        def num_tasks(self, split: str) -> int:
            raise ValueError("it has no end")

    async with staged(offered(Stream)) as stage:
        assert (await stage.query("splits")).detail == "the hub is down"
        assert (await stage.query("count", "any")).detail == "it has no end"
        assert (await stage.query("get", "any", 10**6))["index"] == 10**6
