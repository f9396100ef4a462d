"""Tasks that a class declares, and every mixture of declared and written: the rest follows, and all answers agree."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faces.sources import Stream
from ors import AuthoringError, Environment, ToolOutput, tool
from ors.adapters.ors_environment import ORSOffering
from ors.core.failures import Failure
from ors.tasks import Generated, InMemory, Jsonl, task_key

from .play import Played, kind, played, said

pytestmark = pytest.mark.anyio

METHODS = ("list_tasks", "num_tasks", "get_task", "get_task_range")


class Bare(Environment):
    """Says nothing of tasks."""

    def get_prompt(self) -> Any:
        return "Go."

    @tool
    def go(self) -> ToolOutput:
        return said(json.dumps(self.task_spec))


def numbers(size: int) -> list[dict[str, int]]:
    return [{"n": number} for number in range(size)]


def written(own: set[str], later: bool, size: int, calls: list[str]) -> dict[str, Any]:
    """Task methods as an author writes them, noting their calls."""
    tasks = numbers(size)

    def list_tasks(cls: Any, split: str) -> Any:
        calls.append("list_tasks")
        return tasks

    def num_tasks(cls: Any, split: str) -> Any:
        calls.append("num_tasks")
        return size

    def get_task(cls: Any, split: str, index: int) -> Any:
        calls.append("get_task")
        if index >= size:
            raise IndexError(index)
        return tasks[index]

    def get_task_range(cls: Any, split: str, start: int | None = None, stop: int | None = None) -> Any:
        calls.append("get_task_range")
        return tasks[start:stop]

    def form(function: Any) -> Any:
        async def asynchronous(*args: Any) -> Any:
            await asyncio.sleep(0)
            return function(*args)

        return classmethod(asynchronous if later else function)

    found = {f.__name__: form(f) for f in (list_tasks, num_tasks, get_task, get_task_range)}
    return {name: found[name] for name in own}


@settings(deadline=None, max_examples=120)
@example(own={"get_task"}, later=False, declared=False, size=0, start=None, stop=0, index=1)
@given(
    own=st.sets(st.sampled_from(METHODS)),
    later=st.booleans(),
    declared=st.booleans(),
    size=st.integers(0, 6),
    start=st.none() | st.integers(-8, 8),
    stop=st.none() | st.integers(-8, 8),
    index=st.integers(-2, 8),
)
def test_the_rest_follows_from_whatever_there_is(
    own: set[str], later: bool, declared: bool, size: int, start: int | None, stop: int | None, index: int
) -> None:
    calls: list[str] = []
    body = written(own, later, size, calls)
    body |= {"tasks": InMemory({"train": numbers(size)})} if declared else {"list_splits": lambda: ["train"]}
    if not declared:
        body["list_splits"] = staticmethod(body["list_splits"])
    cls = type("Mixed", (Bare,), body)
    tasks = numbers(size)
    counted = declared or bool(own - {"get_task"})
    picked = declared or bool(own - {"num_tasks"})
    bounded = (start is None or start >= 0) and stop is not None and stop >= 0
    sliced = declared or "list_tasks" in own or "get_task_range" in own or ("get_task" in own and (counted or bounded))

    async def ask() -> None:
        async with played(cls) as p:
            answers = [(await p.ask("count"), size if counted else None)]
            if picked and 0 <= index < size:
                answers.append((await p.ask("get", index=index), tasks[index]))
            elif picked:
                assert kind(await p.ask("get", index=index)) == "invalid_index"
            else:
                answers.append((await p.ask("get", index=max(index, 0)), None))
            answers.append((await p.ask("range", start=start, stop=stop), tasks[start:stop] if sliced else None))
            assert calls.count("list_tasks") <= 1, "listed once for each index"
            answers.append((await p.listed(), tasks if declared or "list_tasks" in own else None))
            assert calls.count("list_tasks") <= 2
            for answer, expected in answers:
                if expected is None:
                    assert kind(answer) == "not_supported"
                else:
                    assert answer == expected

    asyncio.run(ask())

    async def call() -> None:
        """What an author's own test sees."""

        async def settled(value: Any) -> Any:
            return await value if hasattr(value, "__await__") else value

        if counted:
            assert await settled(cls.num_tasks("train")) == size
        if picked and 0 <= index < size:
            assert await settled(cls.get_task("train", index)) == tasks[index]
        if sliced and (bounded or not own & {"get_task_range"}):
            assert await settled(cls.get_task_range("train", start, stop)) == tasks[start:stop]
        if declared or "list_tasks" in own:
            assert await settled(cls.list_tasks("train")) == tasks

    asyncio.run(call())


# Declaring, as Python inherits


class Parent(Bare):
    tasks = InMemory({"train": [{"of": "parent"}], "test": []}, types={"test": "test"})


class Child(Parent):
    pass


class Other(Parent):
    tasks = InMemory({"extra": [{"of": "other"}, {"of": "other"}]})


class Written(Bare):
    @classmethod
    def list_splits(cls) -> Any:
        return ["written"]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"of": "written"}]


class Declared(Written):
    """Stands before what its parent wrote."""

    tasks = InMemory({"train": [{"of": "declared"}] * 3})


class Undone(Declared):
    tasks = None


async def test_a_declaration_is_inherited_and_replaced_as_any_attribute() -> None:
    async with played(Parent, Child, Other, Declared, Written) as p:
        for env, split, count, of in [
            ("Parent", "train", 1, "parent"),
            ("Child", "train", 1, "parent"),
            ("Other", "extra", 2, "other"),
            ("Declared", "train", 3, "declared"),
            ("Written", "written", 1, "written"),
        ]:
            assert await p.ask("count", split, env=env) == count
            assert await p.ask("get", split, env=env, index=0) == {"of": of}
        assert await p.ask("splits", env="Child") == [
            {"name": "train", "type": "train"},
            {"name": "test", "type": "test"},
        ]
        assert kind(await p.ask("count", "train", env="Other")) == "unknown_split"
    assert await Child.num_tasks("train") == 1
    assert Declared.list_tasks("train") == [{"of": "declared"}] * 3
    assert Written.list_tasks("written") == [{"of": "written"}]
    assert await Declared.get_task_range("train", -2) == [{"of": "declared"}] * 2
    with pytest.raises(NotImplementedError, match="Undone does not define list_splits"):
        Undone.list_splits()
    with pytest.raises(AuthoringError, match="Undone does not define list_splits"):
        ORSOffering(Undone)


async def test_an_attribute_that_is_no_source_is_left_alone() -> None:
    class Own(Written):
        tasks = ["wash up", "sleep"]

    async with played(Own) as p:
        assert await p.listed("written") == [{"of": "written"}]
    assert Own.tasks == ["wash up", "sleep"]


async def test_what_is_written_may_ask_for_what_it_replaces() -> None:
    class Own(Bare):
        tasks = InMemory({"train": numbers(5)})

        @classmethod
        async def get_task(cls, split: str, index: int) -> Any:
            return {**await super().get_task(split, index), "more": True}

        @classmethod
        async def num_tasks(cls, split: str) -> int:
            return await super().num_tasks(split) - 1

    async with played(Own) as p:
        assert await p.ask("count") == 4
        assert await p.ask("range", start=-2) == [{"n": 2, "more": True}, {"n": 3, "more": True}]
        assert len(await p.listed()) == 4
        assert kind(await p.ask("get", index=4)) == "invalid_index"


class Duck:
    """Has the methods of a source, each asynchronous, and is none."""

    async def splits(self) -> Any:
        return ["train"]

    async def count(self, split: str) -> int:
        return 3

    async def get(self, split: str, index: int) -> Any:
        await asyncio.sleep(0)
        if index >= 3:
            raise IndexError(index)
        return {"n": index}

    async def range(self, split: str, start: int, stop: int) -> Any:
        return [{"n": index} for index in range(start, min(stop, 3))]


async def test_a_source_of_the_authors_own_may_be_asynchronous_and_need_not_be_a_subclass() -> None:
    class Own(Bare):
        tasks = Duck()

    async with played(Own) as p:
        assert await p.ask("count") == 3
        assert await p.ask("get", index=1) == {"n": 1}
        assert kind(await p.ask("get", index=3)) == "invalid_index"
        assert await p.ask("range", start=1) == [{"n": 1}, {"n": 2}]
        assert await p.listed() == numbers(3)
        assert await (await p.open(index=2)).text("go") == '{"n": 2}'
    assert await Own.num_tasks("train") == 3


# Splits that cannot be listed, counted or picked


async def test_a_split_without_an_end() -> None:
    class Endless(Bare):
        tasks = Generated({"train": None}, lambda seed: {"seed": seed})

    class Preview(Endless):
        list_limit = 3

    async with played(Endless, Preview) as p:
        assert kind(await p.ask("count")) == "not_supported"
        assert await p.ask("get", index=10**6) == {"seed": 10**6}
        assert await p.ask("range", start=5, stop=7) == [{"seed": 5}, {"seed": 6}]
        for bounds in ({}, {"start": 3}, {"start": -3, "stop": 2}, {"stop": -1}):
            refused = await p.ask("range", **bounds)
            assert kind(refused) == "not_supported"
            assert "a start and a stop, both 0 or more" in refused.detail
        assert kind(await p.ask("range", start=0, stop=10**9)) == "invalid_index"
        refused = await p.listed()
        assert kind(refused) == "not_supported" and "index-based API" in refused.detail
        assert await listing(p, "Preview") == (numbers_of("seed", 3), True)


def numbers_of(name: str, size: int) -> list[dict[str, int]]:
    return [{name: number} for number in range(size)]


async def listing(p: Played, env: str, split: str = "train") -> tuple[Any, bool]:
    """The tasks that are listed, and whether there are more."""
    pieces = [piece async for piece in p.host.tasks(env.lower(), split)]
    assert not any(isinstance(piece, Failure) for piece in pieces), pieces
    answer = json.loads(b'{"tasks":' + b"".join(pieces) + b"}")  # type: ignore[arg-type]
    return answer["tasks"], answer.get("truncated", False)


@pytest.mark.parametrize(("limit", "shown", "truncated"), [(0, 0, True), (2, 2, True), (5, 5, False), (9, 5, False)])
async def test_a_limit_makes_a_preview_and_counts_stay_true(limit: int, shown: int, truncated: bool) -> None:
    class Source(Bare):
        list_limit = limit
        tasks = InMemory({"train": numbers(5)})

    class Listed(Written):
        list_limit = limit

        @classmethod
        def list_tasks(cls, split: str) -> Any:
            return numbers(5)

    async with played(Source, Listed) as p:
        assert await listing(p, "Source") == (numbers(shown), truncated)
        assert await listing(p, "Listed", "written") == (numbers(shown), truncated)
        assert await p.ask("count") == 5
        assert await p.ask("get", index=4) == {"n": 4}


async def test_a_preview_that_the_author_makes_is_told_from_the_whole() -> None:
    class Own(Written):
        @classmethod
        def list_tasks(cls, split: str) -> Any:
            return numbers(2)

        @classmethod
        def num_tasks(cls, split: str) -> Any:  # type: ignore[override]
            return 1_000_000

        @classmethod
        def get_task(cls, split: str, index: int) -> Any:  # type: ignore[override]
            return {"n": index}

    async with played(Own) as p:
        assert await listing(p, "Own", "written") == (numbers(2), True)
        assert await p.ask("range", "written", start=-1) == [{"n": 999_999}]


@pytest.mark.parametrize("limit", [-1, True, "all", 1.5])
def test_a_limit_that_is_none(limit: Any) -> None:
    class Own(Parent):
        list_limit = limit

    with pytest.raises(AuthoringError, match=r"Own\.list_limit is .*; it is a number of tasks, or None for all"):
        ORSOffering(Own)


async def test_a_stream_can_be_listed_and_nothing_else() -> None:
    class Own(Bare):
        tasks = Stream()

    class Preview(Own):
        list_limit = 10

    async with played(Own, Preview) as p:
        assert await listing(p, "Own") == (numbers(1000), False)
        assert await listing(p, "Own") == (numbers(1000), False)
        assert await listing(p, "Preview") == (numbers(10), True)
        for refused in (await p.ask("get", index=0), await p.ask("range", start=0, stop=2), await p.open(index=0)):
            assert (refused.kind, refused.detail) == ("not_supported", "a stream has no places; list its tasks")
        refused = await p.ask("count")
        assert kind(refused) == "not_supported" and "they can be listed" in refused.detail


# What goes wrong


async def test_a_file_that_is_changed_while_it_is_listed_breaks_the_list_off(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"n": {number}}}\n' for number in range(50_000)))

    class Own(Bare):
        tasks = Jsonl({"train": path}, cache=tmp_path / "cache")

    async with played(Own) as p:
        pieces = p.host.tasks("own", "train")
        assert json.loads(await anext(pieces) + b"]") == [{"n": 0}]  # type: ignore[operator]
        beside = tmp_path / "new.jsonl"
        beside.write_text('{"n": -1}\n' * 50_000)
        beside.replace(path)
        rest = [piece async for piece in pieces]
        assert kind(rest[-1]) == "task_failed"
        assert b"-1" not in b"".join(piece for piece in rest if isinstance(piece, bytes))
        assert await p.ask("get", index=7) == {"n": -1}


@pytest.mark.parametrize("errors", ["none", "exception"])
async def test_a_bad_row_holds_its_place(tmp_path: Path, errors: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 0}\n{"n": \n{"n": 2}\n')

    class Own(Bare):
        tasks = Jsonl({"train": path})

    async with played(Own, errors=errors) as p:
        for tasks in (await p.listed(), await p.ask("range", start=0)):
            assert (tasks[0], tasks[2]) == ({"n": 0}, {"n": 2})
            assert list(tasks[1]) == ["error"] and "task 1 of split 'train'" in tasks[1]["error"]
        for failed in (await p.ask("get", index=1), await p.open(index=1)):
            assert kind(failed) == "bad_task"
        assert await p.ask("get", index=2) == {"n": 2}


async def test_a_source_that_fails_says_no_more_than_the_server_is_set_to(tmp_path: Path) -> None:
    class Own(Bare):
        tasks = Jsonl({"train": tmp_path / "missing.jsonl"})

    async with played(Own, errors="none") as p:
        for failed in (await p.ask("count"), await p.ask("range", start=0, stop=1), await p.listed()):
            assert (failed.kind, failed.detail) == ("task_failed", "Internal Server Error")
    async with played(Own) as p:
        for failed in (await p.ask("count"), await p.ask("get", index=0), await p.listed()):
            assert failed.kind == "task_failed" and "missing.jsonl" in failed.detail


# Keys


async def test_an_episode_has_the_key_of_its_task() -> None:
    class Hashed(Parent):
        pass

    class Named(Bare):
        tasks = InMemory({"train": [{"id": "first", "n": 1}, {"n": 2}]}, id="id")

    class Own(Written):
        pass

    async with played(Hashed, Named, Own) as p:

        async def key(**place: Any) -> Any:
            episode = await p.open(**place)
            return p.host._sessions[episode.sid].task

        assert await key(index=0, env="Hashed") == ("train[0]", task_key({"of": "parent"}))
        assert await key(task={"of": "parent"}, env="Hashed") == (None, task_key({"of": "parent"}))
        assert await key(index=0, env="Named") == ("train[0]", "first")
        assert await key(task={"id": "first", "n": 1}, env="Named") == (None, "first")
        # one that has none is told by what it says
        assert await key(index=1, env="Named") == ("train[1]", task_key({"n": 2}))
        assert await key(split="written", index=0, env="Own") == ("written[0]", task_key({"of": "written"}))
        large = {"text": "x" * 100_000, "list": [1.5] * 1000}
        assert await key(task=large, env="Own") == (None, task_key(large))
