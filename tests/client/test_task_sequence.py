"""Tasks as a sequence, against a real server: what comes, in which order, and with how many requests."""

from __future__ import annotations

import asyncio
import gc
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ors import Environment, TextBlock, ToolOutput, tool
from ors.client import ORS, AsyncORS, Task
from ors.client.order import Cursor
from ors.client.task_sequence import TaskSequence
from ors.errors import ClientError
from served import Served

SIZE = 2_345
asked: list[str] = []


class Numbers(Environment):
    @classmethod
    def list_splits(cls) -> Any:
        return ["train", "test"]

    @classmethod
    def num_tasks(cls, split: str) -> Any:
        asked.append("count")
        return SIZE if split == "train" else 0

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        asked.append(f"{index}")
        if not 0 <= index < SIZE or split == "test":
            raise IndexError(index)
        return {"number": index}

    @classmethod
    def get_task_range(cls, split: str, start: Any = None, stop: Any = None) -> Any:
        asked.append(f"{start}:{stop}")
        return [{"number": number} for number in range(SIZE)[start:stop]]

    def get_prompt(self) -> Any:
        return str(self.task_spec["number"])

    @tool
    def count(self) -> ToolOutput:
        """Say the number."""
        return ToolOutput(blocks=[TextBlock(text=str(self.task_spec["number"]))])


class Endless(Numbers):
    @classmethod
    def num_tasks(cls, split: str) -> Any:
        raise NotImplementedError

    @classmethod
    def get_task_range(cls, split: str, start: Any = None, stop: Any = None) -> Any:
        return [{"number": number} for number in range(start, stop)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    served = Served([Numbers, Endless])
    yield served.url
    served.stop()


@pytest.fixture
def tasks(url: str) -> Iterator[TaskSequence]:
    with ORS(url) as client:
        yield client.environment("numbers").tasks("train", page=100)


def numbers(tasks: Any) -> list[int]:
    return [task.task_spec["number"] for task in tasks]


def test_it_is_a_sequence(tasks: TaskSequence) -> None:
    assert len(tasks) == SIZE
    assert tasks[12].task_spec == {"number": 12}
    assert (tasks[12].split, tasks[12].index) == ("train", 12)
    assert tasks[-1].task_spec == {"number": SIZE - 1}
    assert numbers(tasks[10:20:3]) == [10, 13, 16, 19]
    assert numbers(tasks[-3:]) == [SIZE - 3, SIZE - 2, SIZE - 1]
    assert numbers(tasks[5:100][::-1][:2]) == [99, 98]
    assert len(tasks[SIZE:]) == 0
    assert numbers(tasks.skip(10).take(3)) == [10, 11, 12]
    assert numbers(tasks) == list(range(SIZE))
    for outside in (SIZE, -SIZE - 1):
        with pytest.raises(IndexError, match="2,345 tasks"):
            tasks[outside]


def test_tasks_come_page_by_page_and_the_next_before_it_is_needed(tasks: TaskSequence) -> None:
    asked.clear()
    iterator = iter(tasks)
    assert asked == []
    next(iterator)
    numbers_of_first = [next(iterator).task_spec["number"] for _ in range(99)]
    assert numbers_of_first == list(range(1, 100))
    next(iterator)
    assert asked[0] == "0:100"
    assert "100:200" in asked
    assert len(asked) <= 3
    del iterator
    gc.collect()


def test_neighbours_are_one_request_and_a_shuffled_page_is_many_side_by_side(tasks: TaskSequence) -> None:
    asked.clear()
    assert numbers(tasks.__getitems__([7, 5, 6, 7])) == [7, 5, 6, 7]
    assert asked == ["5:8"]
    asked.clear()
    assert numbers(tasks[0:40:2]) == list(range(0, 40, 2))
    assert asked == ["0:39"]
    asked.clear()
    shuffled = tasks.shuffle(1).take(20)
    assert len(numbers(shuffled)) == 20
    assert all(":" not in request or len(request) < 12 for request in asked)


def test_a_shuffle_has_every_task_once_and_another_order_in_each_epoch(tasks: TaskSequence) -> None:
    small = tasks.take(50)
    first = numbers(small.shuffle(3))
    assert sorted(first) == list(range(50))
    assert first == numbers(small.shuffle(3))
    assert first != numbers(small.shuffle(4))
    assert first != numbers(small.shuffle(3).at_epoch(1))
    twice = numbers(small.shuffle(3).repeat(2))
    assert twice[:50] == first
    assert twice[50:] == numbers(small.shuffle(3).at_epoch(1))
    assert len(small.repeat(2)) == 100
    assert [small.shuffle(3).repeat(2)[place].task_spec["number"] for place in range(45, 55)] == twice[45:55]
    with pytest.raises(IndexError):
        small.repeat(2)[100]


def test_shards_share_it_out(tasks: TaskSequence) -> None:
    shuffled = tasks.take(103).shuffle(9)
    shards = [shuffled.shard(rank, 4) for rank in range(4)]
    assert [len(shard) for shard in shards] == [26, 26, 26, 25]
    assert sorted(sum((numbers(shard) for shard in shards), [])) == list(range(103))
    assert numbers(shards[1]) == numbers(shuffled)[1::4]
    assert [shards[1][place].task_spec["number"] for place in range(26)] == numbers(shards[1])
    assert numbers(shards[1][2:4]) == numbers(shards[1])[2:4]
    assert [len(shuffled.shard(rank, 4, remainder="drop")) for rank in range(4)] == [25] * 4
    assert [len(shuffled.shard(rank, 4, remainder="pad")) for rank in range(4)] == [26] * 4
    parts = [numbers(shards[1].workers(part, 3)) for part in range(3)]
    assert sorted(sum(parts, [])) == sorted(numbers(shards[1]))


def test_a_run_goes_on_where_it_was_with_other_shards(tasks: TaskSequence) -> None:
    order = tasks.take(103).shuffle(9).repeat(2)
    used: list[int] = []
    cursor = None
    for rank in range(4):
        iterator = iter(order.shard(rank, 4))
        used += [next(iterator).task_spec["number"] for _ in range(7)]
        cursor = iterator.cursor
    assert cursor == (9, 0, 28)
    saved = Cursor(*json.loads(json.dumps(cursor)))
    rest = [numbers(order.resume(saved).shard(rank, 3)) for rank in range(3)]
    assert sorted(used + sum(rest, [])) == sorted([*range(103), *range(103)])
    assert [len(order.resume(saved).shard(rank, 3)) for rank in range(3)] == [len(part) for part in rest]


def test_a_cursor_of_another_order_is_refused(tasks: TaskSequence) -> None:
    for cursor, words in (
        (Cursor(2, 0, 5), "seed 2, this one has 1"),
        (Cursor(1, 0, 11), "stands at 11; there are 10"),
        (Cursor(1, 1, 5), "epoch 1; the last is 0"),
    ):
        with pytest.raises(ValueError, match=words):
            tasks.take(10).shuffle(1).resume(cursor)


def test_a_filter_looks_at_tasks_as_they_come(tasks: TaskSequence) -> None:
    even = tasks.take(100).filter(lambda task: task.task_spec["number"] % 2 == 0)
    assert numbers(even) == list(range(0, 100, 2))
    assert numbers(even.filter(lambda task: task.task_spec["number"] > 50).take(3)) == [52, 54, 56]
    iterator = iter(even)
    next(iterator)
    next(iterator)
    assert iterator.cursor == (None, 0, 3)
    for method in ("shuffle", "shard", "repeat"):
        with pytest.raises(ValueError, match=f"{method} first, then filter"):
            getattr(even, method)
    with pytest.raises(AttributeError):
        even.nothing  # noqa: B018
    with pytest.raises(TypeError):
        len(even)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="filter first"):
        even.take(3).filter(bool)


def test_mistakes_are_told(tasks: TaskSequence) -> None:
    for wrong, words in (
        (lambda: tasks.repeat(2).shuffle(1), "shuffle first, then repeat"),
        (lambda: tasks.repeat(-1), "times=-1"),
        (lambda: tasks.shard(3, 3), "shard 3 of 3"),
        (lambda: tasks.repeat()[3:5], "slice first"),
    ):
        with pytest.raises(ValueError, match=words):
            wrong()
    with pytest.raises(TypeError, match="no length"):
        len(tasks.repeat())
    assert len(tasks.repeat(0)) == 0
    assert numbers(tasks.repeat(0)) == []


def test_an_empty_split_is_empty(url: str) -> None:
    with ORS(url) as client:
        tasks = client.environment("numbers").tasks("test")
        assert len(tasks) == 0
        assert numbers(tasks.shuffle(1).repeat()) == []
        assert numbers(tasks.shard(1, 4)) == []
        with pytest.raises(IndexError):
            tasks[0]
        with pytest.raises(ClientError, match="nowhere"):
            client.environment("numbers").tasks("nowhere")


def test_a_split_without_an_end_can_be_gone_through(url: str) -> None:
    with ORS(url) as client:
        tasks = client.environment("endless").tasks("train", page=10)
        iterator = iter(tasks.shard(1, 2))
        assert [next(iterator).task_spec["number"] for _ in range(15)] == list(range(1, 31, 2))
        assert sorted(numbers(tasks.take(30).shuffle(1))) == list(range(30))
        assert "endless" in repr(tasks)
        with pytest.raises(TypeError, match="no length"):
            len(tasks)
        with pytest.raises(ValueError, match="take some"):
            tasks.shuffle(1)
        del iterator
        gc.collect()


def test_a_sequence_goes_to_other_processes(tasks: TaskSequence) -> None:
    copy = pickle.loads(pickle.dumps(tasks.shuffle(5).shard(1, 3)))
    assert numbers(copy[:5]) == numbers(tasks.shuffle(5).shard(1, 3)[:5])
    code = "import pickle, sys; print([t.task_spec['number'] for t in pickle.load(sys.stdin.buffer)])"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(tasks.shuffle(5)[:5]), capture_output=True, timeout=60
    )
    assert json.loads(done.stdout) == numbers(tasks.shuffle(5)[:5]), done.stderr


def test_tables_of_other_packages(tasks: TaskSequence) -> None:
    some = tasks[3:6]
    assert some.to_arrow().to_pydict() == {"number": [3, 4, 5]}
    assert some.to_pandas().number.tolist() == [3, 4, 5]
    assert some.to_polars()["number"].to_list() == [3, 4, 5]
    assert some.to_dataset()["number"][:] == [3, 4, 5]
    assert some.to_list() == [Task("numbers", {"number": number}) for number in (3, 4, 5)]


def test_asynchronous_code_has_the_same(url: str) -> None:
    async def play() -> None:
        async with AsyncORS(url) as client:
            tasks = await client.environment("numbers").tasks("train", page=50)
            assert len(tasks) == SIZE
            assert (await tasks.get(-1)).task_spec["number"] == SIZE - 1
            shuffled = tasks.take(120).shuffle(2)
            found = [task.task_spec["number"] async for task in shuffled]
            assert sorted(found) == list(range(120))
            assert [task.task_spec["number"] for task in await shuffled[3:6].to_list()] == found[3:6]
            iterator = aiter(shuffled)
            assert [(await anext(iterator)).task_spec["number"] for _ in range(60)] == found[:60]
            assert iterator.cursor == (2, 0, 60)
            rest = shuffled.resume(iterator.cursor)
            assert [task.task_spec["number"] async for task in rest] == found[60:]
            even = tasks.filter(lambda task: task.task_spec["number"] % 2 == 0).take(3)
            assert [task.task_spec["number"] async for task in even] == [0, 2, 4]
            with pytest.raises(TypeError, match=r"await tasks\.get"):
                tasks[3]  # type: ignore[index]

    asyncio.run(play())
