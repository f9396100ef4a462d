"""What every source does alike, and the sources that are no files."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ors.errors import TaskFileError
from ors.tasks import Filter, Folder, Generated, InMemory, TaskSource, as_source, is_source, task_key, union
from ors.types import Split


class Later(TaskSource):
    """A source whose methods have to be awaited."""

    def __init__(self, tasks: Sequence[Any], counted: bool = True) -> None:
        self.tasks = tasks
        self.counted = counted

    async def splits(self) -> Any:
        await asyncio.sleep(0)
        return ["train"]

    async def count(self, split: str) -> Any:
        await asyncio.sleep(0)
        return len(self.tasks) if self.counted else None

    async def get(self, split: str, index: int) -> Any:
        await asyncio.sleep(0)
        if index < 0:
            raise IndexError(index)
        return self.tasks[index]


class Now(TaskSource):
    """The least that a source has to define."""

    def __init__(self, tasks: Sequence[Any], counted: bool = True) -> None:
        self.tasks = tasks
        self.counted = counted

    def splits(self) -> Any:
        return ["train"]

    def count(self, split: str) -> Any:
        return len(self.tasks) if self.counted else None

    def get(self, split: str, index: int) -> Any:
        if index < 0:
            raise IndexError(index)
        return self.tasks[index]


class Duck:
    """A source that knows nothing of this package."""

    def __init__(self, tasks: Sequence[Any]) -> None:
        self.tasks = tasks

    def splits(self) -> list[str]:
        return ["train"]

    def count(self, split: str) -> int:
        return len(self.tasks)

    def get(self, split: str, index: int) -> Any:
        return self.tasks[index]

    def range(self, split: str, start: int, stop: int) -> Any:
        return self.tasks[start:stop]


def settle(value: Any) -> Any:
    """What a method returns, awaited where it has to be."""
    if not inspect.isawaitable(value):
        return value

    async def wait() -> Any:
        return await value

    return asyncio.run(wait())


TASKS = [{"n": n} for n in range(7)]
KINDS = {
    "now": Now,
    "later": Later,
    "uncounted": lambda tasks: Now(tasks, counted=False),
    "uncounted, later": lambda tasks: Later(tasks, counted=False),
    "duck": lambda tasks: as_source(Duck(tasks)),
    "memory": lambda tasks: InMemory({"train": tasks}),
    "function": lambda tasks: InMemory({"train": lambda: iter(tasks)}),
    "generated": lambda tasks: Generated({"train": len(tasks)}, lambda split, index: tasks[index]),
    "union": lambda tasks: union(InMemory({"train": tasks[:2]}), Now(tasks[2:2]), Later(tasks[2:])),
    "filter": lambda tasks: InMemory({"train": [0, *tasks, 1]}).filter(lambda task: type(task) is not int),
    "filter, later": lambda tasks: Later([0, *tasks, 1]).filter(lambda task: type(task) is not int),
    "map": lambda tasks: InMemory({"train": list(range(len(tasks)))}).map(lambda index: tasks[index]),
    "map, later": lambda tasks: Later(list(range(len(tasks)))).map(lambda index: tasks[index]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_answers_alike(kind: str) -> None:
    source: TaskSource = KINDS[kind](TASKS)
    assert is_source(source)
    assert as_source(source) is source
    assert list(settle(source.splits())) == ["train"]
    count = settle(source.count("train"))
    assert count == (None if kind.startswith("uncounted") else 7)
    assert [settle(source.get("train", index)) for index in range(7)] == TASKS
    for start, stop in ((0, 7), (2, 5), (0, 0), (6, 100), (7, 9), (100, 200)):
        assert list(settle(source.range("train", start, stop))) == TASKS[start:stop]
        assert list(map(json.loads, settle(source.texts("train", start, stop)))) == TASKS[start:stop]
    assert settle(source.key("train", 3)) == task_key({"n": 3})
    for index in (-1, 7, 1000):
        if kind != "duck" or index > 0:
            with pytest.raises(IndexError):
                settle(source.get("train", index))


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_task_holds_its_place(kind: str) -> None:
    tasks = [{"n": 0}, {"n": float("nan")}, {"n": 2}]
    first, bad, last = map(json.loads, settle(KINDS[kind](tasks).texts("train", 0, 3)))
    assert (first, last) == ({"n": 0}, {"n": 2})
    words = "the value at $.n is NaN or infinite, which JSON cannot hold"
    assert bad == {"error": f"task 1 of split 'train' cannot be JSON: {words}"}


@pytest.mark.parametrize("make", [Now, Later])
def test_a_task_that_cannot_be_had_holds_its_place(make: Any) -> None:
    class Broken(list[Any]):
        def __getitem__(self, index: Any) -> Any:
            if index == 1:
                raise RuntimeError("the disk is gone")
            return super().__getitem__(index)

    texts = settle(make(Broken(TASKS[:3])).texts("train", 0, 9))
    error = {"error": "task 1 of split 'train' cannot be JSON: RuntimeError: the disk is gone"}
    assert list(map(json.loads, texts)) == [{"n": 0}, error, {"n": 2}]


def test_what_is_wrong_with_a_whole_split_is_raised(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match="missing: No such file"):
        Folder({"train": tmp_path / "missing"}).texts("train", 0, 5)


def test_what_is_no_source() -> None:
    for value in (None, [], {}, "tasks", Now, object()):
        assert not is_source(value)
        with pytest.raises(TypeError, match="no source of tasks; one has splits, count, get, range"):
            as_source(value)
    assert is_source(Duck([]))


def test_types_of_splits() -> None:
    source = InMemory({"easy": [], "test": [], "hidden": []}, types={"easy": "train", "hidden": "test"})
    found = [Split.of(split) for split in source.splits()]
    assert [(split.name, split.type) for split in found] == [("easy", "train"), ("test", "test"), ("hidden", "test")]
    with pytest.raises(ValueError, match="types has easier"):
        InMemory({"easy": []}, types={"easier": "train"})
    with pytest.raises(TypeError, match="InMemory takes {split: where its tasks are}"):
        InMemory([{"n": 1}])  # type: ignore[arg-type]


def test_ids() -> None:
    source = InMemory({"train": [{"id": "a", "n": 1}, {"id": 7}]}, id="id")
    assert [source.key("train", index) for index in (0, 1)] == ["a", "7"]
    for same in (source.filter(bool), union(source), source.map(lambda task: {"other": task["n"]})):
        assert same.has_ids
        assert same.key("train", 0) == "a"
    assert source.map(lambda task: {"m": task["n"]}, id="m").key("train", 0) == "1"
    assert not union(source, InMemory({})).has_ids
    with pytest.raises(ValueError, match="task 1 of split 'train' has no key: the task has no field 'n'"):
        InMemory({"train": [{"n": 1}, {}]}, id="n").key("train", 1)


def test_a_list_is_made_when_it_is_needed_and_once() -> None:
    made = []

    def make() -> Any:
        made.append(threading.get_ident())
        return list(TASKS)

    source = InMemory({"train": make, "test": lambda: "text"})
    assert made == []
    threads = [threading.Thread(target=source.count, args=("train",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.get("train", 0) is source.get("train", 0)
    assert len(made) == 1
    with pytest.raises(TypeError, match="the tasks of split 'test' are a list of tasks, not str"):
        source.count("test")


def double(split: str, index: int) -> Any:
    return {"split": split, "double": index * 2}


def from_seed(seed: int, size: int = 3) -> Any:
    return {"seed": seed, "size": size}


def test_generated_by_split_and_index() -> None:
    source = Generated({"train": 10**12, "test": None}, double)
    assert source.count("train") == 10**12
    assert source.count("test") is None
    assert source.get("train", 10**12 - 1) == {"split": "train", "double": 2 * (10**12 - 1)}
    assert source.range("test", 10**15, 10**15 + 2) == [double("test", 10**15), double("test", 10**15 + 1)]
    with pytest.raises(IndexError):
        source.get("train", 10**12)
    assert pickle.loads(pickle.dumps(source)).get("test", 5) == double("test", 5)


def test_generated_by_seed() -> None:
    source = Generated({"train": None, "test": 5}, from_seed)
    assert source.get("train", 3) == {"seed": 3, "size": 3}
    assert [task["seed"] for task in source.range("test", 0, 9)] == [(1 << 30) + n for n in range(5)]
    with pytest.raises(IndexError, match="which has 1073741824 tasks"):
        source.get("train", 1 << 30)  # the seeds of the next split begin there


def test_generated_asynchronously() -> None:
    async def make(split: str, index: int) -> Any:
        await asyncio.sleep(0)
        return {"n": index}

    source = Generated({"train": 3}, make)
    assert settle(source.range("train", 1, 9)) == [{"n": 1}, {"n": 2}]
    assert settle(source.texts("train", 0, 1)) == [b'{"n":0}']


@pytest.mark.parametrize(
    ("where", "make", "words"),
    [
        ({"train": -1}, double, "split 'train' has -1 tasks; say a number"),
        ({"train": True}, double, "has True tasks"),
        ({"train": "many"}, double, "has 'many' tasks"),
        ({"train": 1 << 31}, from_seed, "a split has 2\\^30 at most"),
        ({"train": 1}, lambda: None, "takes \\(split, index\\) or \\(seed\\)"),
        ({"train": 1}, lambda a, b, c: None, "takes \\(split, index\\) or \\(seed\\)"),
    ],
)
def test_generated_from_what_cannot_be(where: Any, make: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        Generated(where, make)


@given(
    sizes=st.lists(st.integers(0, 5), max_size=5),
    start=st.integers(0, 30),
    length=st.integers(0, 30),
)
def test_a_union_is_its_parts_one_after_another(sizes: list[int], start: int, length: int) -> None:
    parts = [[{"part": part, "n": n} for n in range(size)] for part, size in enumerate(sizes)]
    source = union(*(InMemory({"train": tasks, f"only {part}": tasks}) for part, tasks in enumerate(parts)))
    whole = [task for tasks in parts for task in tasks]
    if not sizes:
        assert source.splits() == []
        return
    assert source.splits()[:2] == ["train", "only 0"]
    assert source.count("train") == len(whole)
    assert source.range("train", start, start + length) == whole[start : start + length]
    assert [source.get("train", index) for index in range(len(whole))] == whole
    assert source.range("only 0", 0, 9) == parts[0]


def test_a_union_with_an_endless_part_and_errors_by_its_own_indices() -> None:
    endless = Generated({"train": None}, lambda split, index: {"made": index if index else float("inf")})
    source = union(InMemory({"train": TASKS[:2]}), endless)
    assert source.count("train") is None
    assert source.get("train", 2 + 10**9) == {"made": 10**9}
    texts = source.texts("train", 1, 4)
    assert [texts[0], texts[2]] == [b'{"n":1}', b'{"made":1}']
    assert json.loads(texts[1])["error"].startswith("task 2 of split 'train' cannot be JSON: the value at $.made")
    with pytest.raises(ValueError, match="part 1 of the union has no count of split 'train'"):
        union(endless, endless).get("train", 0)
    with pytest.raises(KeyError, match="no source of the union has the split 'test'"):
        source.count("test")


@given(st.lists(st.booleans(), max_size=40), st.data())
def test_a_filter_has_what_fits_in_the_same_order(fits: list[bool], data: st.DataObject) -> None:
    tasks = [{"n": n, "fits": fit} for n, fit in enumerate(fits)]
    source = InMemory({"train": tasks}).filter(lambda task: task["fits"])
    expected = [task for task in tasks if task["fits"]]
    for _ in range(5):
        start = data.draw(st.integers(0, 45))
        stop = data.draw(st.integers(start, 45))
        assert source.range("train", start, stop) == expected[start:stop]
    assert source.count("train") == len(expected)


def test_a_filter_reads_no_further_than_it_must() -> None:
    read = []

    def make(split: str, index: int) -> Any:
        read.append(index)
        return {"n": index}

    source = Generated({"train": None}, make).filter(lambda task: task["n"] % 100 == 0)
    assert source.count("train") is None
    assert source.range("train", 3, 5) == [{"n": 300}, {"n": 400}]
    assert max(read) < 1000
    before = len(read)
    assert source.get("train", 2) == {"n": 200}
    assert len(read) == before + 1


def test_what_a_filter_cannot_do() -> None:
    source = InMemory({"train": [{"level": 1}, {}]})
    with pytest.raises(ValueError, match="the filter failed on task 1 of split 'train': KeyError: 'level'"):
        source.filter(lambda task: task["level"]).count("train")

    async def later(task: Any) -> bool:
        raise AssertionError

    fits = later({})
    with pytest.raises(TypeError, match="not asynchronous"):
        source.filter(lambda task: fits).count("train")
    fits.close()


def test_a_filter_follows_a_file_that_changes(tmp_path: Path) -> None:
    from ors.tasks import Jsonl

    path = tmp_path / "tasks.jsonl"
    path.write_text('{"n":1}\n{"n":2}\n{broken\n')
    source = Jsonl({"train": path}).filter(lambda task: task["n"] > 1)
    assert source.range("train", 0, 1) == [{"n": 2}]
    assert source.count("train") == 2  # what cannot be read is not left out without a word
    with pytest.raises(TaskFileError, match="row 3"):
        source.get("train", 1)
    path.write_text('{"n":3}\n{"n":4}\n{"n":5}\n')
    assert source.range("train", 0, 9) == [{"n": 3}, {"n": 4}, {"n": 5}]
    assert isinstance(pickle.loads(pickle.dumps(Filter(Jsonl({"train": path}), bool))), Filter)


def test_a_map_may_change_the_task_that_it_is_given() -> None:
    def add(task: dict[str, Any]) -> dict[str, Any]:
        task["n"] += 1
        return task

    source = InMemory({"train": TASKS}).map(add)
    assert source.range("train", 0, 2) == source.range("train", 0, 2) == [{"n": 1}, {"n": 2}]
    assert TASKS[0] == {"n": 0}


def test_a_map_may_be_asynchronous() -> None:
    async def add(task: Any) -> Any:
        await asyncio.sleep(0)
        return {"n": task["n"] + 1}

    source = InMemory({"train": TASKS}).map(add)
    assert settle(source.get("train", 6)) == {"n": 7}
    assert settle(source.texts("train", 5, 9)) == [b'{"n":6}', b'{"n":7}']


# Folders


def folders(path: Path, count: int) -> None:
    for number in range(count):
        (path / f"task-{number}").mkdir(parents=True)
        (path / f"task-{number}" / "task.json").write_text(json.dumps({"level": number}))
        (path / f"task-{number}" / "instruction.md").write_text(f"Do {number}.\n")


def test_a_folder_of_task_folders(tmp_path: Path) -> None:
    folders(tmp_path, 3)
    (tmp_path / "README.md").write_text("no task")
    (tmp_path / ".git").mkdir()
    (tmp_path / "task-1" / "task.json").unlink()
    (tmp_path / "task-2" / "task.toml").write_text("when = 2024-01-02\n")
    source = Folder({"train": tmp_path})
    assert source.count("train") == 3
    paths = [str(tmp_path / f"task-{number}") for number in range(3)]
    assert list(map(json.loads, source.texts("train", 0, 9))) == [
        {"name": "task-0", "path": paths[0], "level": 0},
        {"name": "task-1", "path": paths[1]},
        {"name": "task-2", "path": paths[2], "level": 2, "when": "2024-01-02"},
    ]
    assert source.key("train", 1) == "task-1"
    read = Folder({"train": tmp_path}, read=["instruction.md", "task.json"])
    assert read.get("train", 0) == {"name": "task-0", "path": paths[0], "instruction": "Do 0.\n", "level": 0}
    with pytest.raises(TaskFileError, match=r"task-1/task.json, row 2: no such file"):
        read.get("train", 1)
    with pytest.raises(IndexError):
        source.get("train", 3)
    with pytest.raises(TypeError, match="read='task.json'; give a list"):
        Folder({"train": tmp_path}, read="task.json")


def test_a_folder_that_changes(tmp_path: Path) -> None:
    folders(tmp_path, 2)
    source = Folder({"train": tmp_path})
    assert source.count("train") == 2
    version = source.version("train")
    (tmp_path / "task-00").mkdir()
    assert [task["name"] for task in source.range("train", 0, 9)] == ["task-0", "task-00", "task-1"]
    assert source.version("train") != version
    assert pickle.loads(pickle.dumps(source)).count("train") == 3


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("task.json", b"{", "EOF while parsing"),
        ("task.json", b"[]", "holds no object"),
        ("task.json", b"", "the file is empty"),
        ("task.json", b'{"name":"other"}', "there are two 'name'"),
        ("task.json", b'{"a":"\xff"}', "is not UTF-8"),
        ("task.toml", b"a =", "is no TOML"),
        ("notes.txt", b"\xff", "is not UTF-8"),
    ],
)
def test_a_bad_file_in_a_task_folder(tmp_path: Path, file: str, content: bytes, words: str) -> None:
    folders(tmp_path, 2)
    (tmp_path / "task-0" / file).write_bytes(content)
    (tmp_path / "task-1" / file).write_bytes(b"")
    with pytest.raises(TaskFileError, match=f"task-0/{file}, row 1: .*{words}"):
        Folder({"train": tmp_path}, read=[file]).get("train", 0)
