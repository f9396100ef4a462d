"""Task methods of a class, in every form in which authors write them, and never on the server's event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ors import AuthoringError, Environment, ToolOutput, tool
from ors.adapters.ors_environment import ORSOffering

from .play import Episode, Plain, kind, played, said

pytestmark = pytest.mark.anyio

TASKS = [{"number": number} for number in range(5)]


class Places:
    """In which threads author code ran."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def note(self) -> None:
        self.names.add(threading.current_thread().name.rsplit("-", 1)[0])

    def check(self) -> None:
        assert self.names <= {"ors-lane", "ors-author-Plain", "ors-author-Own"}, self.names
        assert self.names


class Lazy(Sequence[Any]):
    """A sequence of the author's own, as a data set's view is."""

    def __init__(self, places: Places, size: int = 5) -> None:
        self.places = places
        self.size = size

    def __len__(self) -> int:
        self.places.note()
        return self.size

    def __getitem__(self, index: Any) -> Any:
        self.places.note()
        assert isinstance(index, int), "not all of them know slices"
        if not 0 <= index < self.size:
            raise IndexError(index)
        return {"number": index}


async def test_a_sequence_of_the_authors_own_is_read_off_the_event_loop() -> None:
    places = Places()

    class Own(Plain):
        @classmethod
        def list_splits(cls) -> Any:
            places.note()
            for name in ("train", "test"):  # a generator: its body runs when it is read
                places.note()
                yield name

        @classmethod
        def list_tasks(cls, split: str) -> Any:
            places.note()
            return Lazy(places)

    async with played(Own) as p:
        assert await p.ask("splits") == [{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]
        assert await p.ask("count") == 5
        assert await p.ask("get", index=4) == {"number": 4}
        assert kind(await p.ask("get", index=5)) == "invalid_index"
        assert await p.ask("range", start=-2) == TASKS[-2:]
        assert await p.ask("range", start=1, stop=100) == TASKS[1:]
        assert await p.listed() == TASKS
        places.check()


async def test_a_sequence_that_breaks_is_an_error_and_a_broken_task_holds_its_place() -> None:
    class Breaking(Lazy):
        def __getitem__(self, index: Any) -> Any:
            if index == 1:
                raise RuntimeError("shard 1 is gone")
            return super().__getitem__(index)

    class Endless(Lazy):
        def __len__(self) -> int:
            raise TypeError("no length")

    sequences = {"train": Breaking, "test": Endless}

    class Own(Plain):
        @classmethod
        def list_splits(cls) -> Any:
            return list(sequences)

        @classmethod
        def list_tasks(cls, split: str) -> Any:
            return sequences[split](Places(), 3)

    async with played(Own) as p:
        broken = {"error": "task 1 of split 'train' cannot be JSON: RuntimeError: shard 1 is gone"}
        assert await p.listed() == [{"number": 0}, broken, {"number": 2}]
        assert kind(await p.ask("get", index=1)) == "task_failed"
        assert await p.ask("get", index=2) == {"number": 2}
        assert await p.ask("range", start=0, stop=3) == [{"number": 0}, broken, {"number": 2}]
        assert await p.ask("range", start=2, stop=3) == [{"number": 2}]
        for answer in (await p.ask("count", "test"), await p.listed("test"), await p.ask("get", "test", index=0)):
            assert answer.detail == "TypeError: no length"


@pytest.mark.parametrize("source", ["list", "get"])
async def test_an_episode_cannot_change_the_task_of_another(source: str) -> None:
    kept = [{"board": [0, 0], "number": 1}]

    class Own(Plain):
        if source == "list":

            @classmethod
            def list_tasks(cls, split: str) -> Any:
                return kept
        else:

            @classmethod
            async def get_task(cls, split: str, index: int) -> Any:
                return kept[index]

        def setup(self) -> None:
            self.task_spec["board"][0] += 1  # type: ignore[index,call-overload]

        @tool
        def look(self) -> ToolOutput:
            return said(self.task_spec["board"])

    async with played(Own) as p:
        for _ in range(3):
            episode = await p.open(index=0)
            assert await episode.text("look") == "[1, 0]"
        assert kept == [{"board": [0, 0], "number": 1}]
        assert await p.ask("get", index=0) == kept[0]


async def test_a_list_is_made_once_and_shown_afresh() -> None:
    calls = list[str]()

    class Own(Plain):
        @classmethod
        async def list_tasks(cls, split: str) -> Any:
            calls.append(split)
            return ({"number": number + len(calls)} for number in range(2))

    async with played(Own) as p:
        assert await p.ask("count") == 2
        assert await p.ask("get", index=0) == {"number": 1}
        assert await p.ask("range", start=0) == [{"number": 1}, {"number": 2}]
        assert calls == ["train"]
        assert await p.listed() == [{"number": 2}, {"number": 3}]
        assert await p.ask("get", index=0) == {"number": 2}
        assert len(calls) == 2


async def test_the_caches_of_a_class_are_its_own() -> None:
    class Parent(Plain):
        tasks_here = 2

        @classmethod
        def list_splits(cls) -> Any:
            return ["train", f"of-{cls.__name__.lower()}"]

        @classmethod
        def list_tasks(cls, split: str) -> Any:
            return [{"of": cls.__name__}] * cls.tasks_here

    class Child(Parent):
        tasks_here = 3

        @tool
        def more(self) -> ToolOutput:
            return said("more")

    class Silent(Parent):
        pass

    async with played(Parent, Child, Silent) as p:
        for name, count in [("Parent", 2), ("Child", 3), ("Silent", 2), ("Parent", 2)]:
            assert [split["name"] for split in await p.ask("splits", env=name)] == ["train", f"of-{name.lower()}"]
            assert await p.ask("count", env=name) == count
            assert await p.ask("get", env=name, index=0) == {"of": name}
        assert b'"more"' in p.host.offerings()["child"].tools
        assert b'"more"' not in p.host.offerings()["parent"].tools
        assert kind(await (await p.open(index=0, env="Parent")).call("more")) == "unknown_tool"


async def test_an_index_past_what_the_author_counts_is_refused() -> None:
    """A generator of tasks takes any index; the count says where its split ends."""
    asked = list[str]()

    class Own(Plain):
        size = 3

        @classmethod
        def num_tasks(cls, split: str) -> Any:
            asked.append("count")
            return cls.size

        @classmethod
        def get_task(cls, split: str, index: int) -> Any:
            asked.append(f"get {index}")
            return {"seed": index}

    async with played(Own) as p:
        assert await p.ask("get", index=2) == {"seed": 2}
        assert await p.ask("get", index=0) == {"seed": 0}
        assert asked == ["count", "get 2", "get 0"], "counted more often than needed"
        past = await p.ask("get", index=3)
        words = "Invalid index: index 3 is outside split 'train', which has 3 tasks"
        assert (past.kind, past.detail) == ("invalid_index", words)
        assert kind(await p.open(index=3)) == "invalid_index"
        assert "get 3" not in asked
        Own.size = 5
        assert await p.ask("get", index=4) == {"seed": 4}
        assert kind(await p.ask("get", index=-1)) == "invalid_index"


@pytest.mark.parametrize("later", [False, True])
async def test_what_an_author_raises(later: bool) -> None:
    raised: list[BaseException] = []

    def fail() -> Any:
        raise raised[0]

    async def fail_later() -> Any:
        raise raised[0]

    class Own(Plain):
        @classmethod
        def num_tasks(cls, split: str) -> Any:
            return fail_later() if later else fail()

        @classmethod
        def get_task(cls, split: str, index: int) -> Any:
            return fail_later() if later else fail()

    expected = [
        (IndexError("no 7"), "task_failed", "invalid_index", "Invalid index: no 7"),
        (IndexError(), "task_failed", "invalid_index", "Invalid index"),
        (NotImplementedError("x"), "not_supported", "not_supported", "get_task is not supported for this environment"),
        (KeyError("x"), "task_failed", "task_failed", "KeyError: 'x'"),
        (SystemExit(3), "task_failed", "task_failed", "SystemExit: 3"),
        (KeyboardInterrupt(), "task_failed", "task_failed", "KeyboardInterrupt"),
        (asyncio.CancelledError(), "task_failed", "task_failed", "CancelledError"),
        (GeneratorExit(), "task_failed", "task_failed", "GeneratorExit"),
    ]
    async with played(Own) as p:
        for exception, count_kind, get_kind, words in expected:
            raised[:] = [exception]
            assert kind(await p.ask("count")) == count_kind
            failed = await p.ask("get", index=0)
            assert (failed.kind, failed.detail) == (get_kind, words)
            assert kind(await p.open(index=0)) == get_kind
    raised.clear()


async def test_details_are_told_as_the_server_is_set() -> None:
    class Own(Plain):
        @classmethod
        def list_tasks(cls, split: str) -> Any:
            raise ValueError("at /home/author")

    for errors, words in [("none", "Internal Server Error"), ("exception", "ValueError: at /home/author")]:
        async with played(Own, errors=errors) as p:
            assert (await p.ask("count")).detail == words
    async with played(Own, errors="stacktrace") as p:
        assert (await p.ask("count")).detail.startswith("Traceback")


class Rebel:
    def __iter__(self) -> Iterator[Any]:
        raise OSError("disk")


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (None, "bad_splits"),
        (5, "bad_splits"),
        (["train", "train"], "bad_splits"),
        ([5], "bad_splits"),
        ([{"type": "train"}], "bad_splits"),
        (Rebel(), "task_failed"),
    ],
)
async def test_splits_that_are_none(listed: Any, words: str) -> None:
    class Own(Plain):
        @classmethod
        def list_splits(cls) -> Any:
            return listed

    async with played(Own) as p:
        for answer in (await p.ask("splits"), await p.ask("count"), await p.listed(), await p.open(index=0)):
            assert kind(answer) == words
        # a task in full needs no split
        assert isinstance(await p.open({"number": 7}), Episode)


async def test_a_split_that_has_come_into_being_is_found() -> None:
    splits = ["train"]

    class Own(Plain):
        @classmethod
        async def list_splits(cls) -> Any:
            return list(splits)

    async with played(Own) as p:
        unknown = await p.ask("count", "extra")
        assert unknown.detail == "Invalid split 'extra'; the splits are train"
        splits.append("extra")
        assert await p.ask("count", "extra") == 3


def test_a_class_without_splits_is_an_error_at_start() -> None:
    class Bare(Environment):
        def get_prompt(self) -> Any:
            return ""

        @tool
        def go(self) -> ToolOutput:
            return said()

    with pytest.raises(AuthoringError, match="Bare does not define list_splits"):
        ORSOffering(Bare)


class Shy:
    """Has no JSON form, and raises when it is looked at."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise OSError("shy")


@pytest.mark.parametrize("task", [[1], None, "text", {"x": float("nan")}, {"x": Shy()}, {"x": "\ud800"}, {1, 2}])
async def test_a_task_that_is_no_json_object_keeps_its_place_and_opens_nothing(task: Any) -> None:
    class Own(Plain):
        @classmethod
        def list_tasks(cls, split: str) -> Any:
            return [{"number": 0}, task, {"number": 2}]

    async with played(Own) as p:
        listed = await p.listed()
        assert listed[0] == {"number": 0} and listed[2] == {"number": 2}
        assert listed[1]["error"].startswith("task 1 of split 'train' cannot be JSON: ")
        assert await p.ask("range", start=0) == listed
        assert kind(await p.ask("get", index=1)) == "bad_task"
        assert kind(await p.open(index=1)) == "bad_task"
        assert isinstance(await p.open(index=2), Episode)


async def test_a_blocked_listing_is_answered_when_its_loop_is_given_up() -> None:
    let_go = threading.Event()

    class Own(Plain):
        @classmethod
        async def list_tasks(cls, split: str) -> Any:
            let_go.wait(30)
            return []

    from ors.runtime import RuntimeOptions

    async with played(Own, runtime=RuntimeOptions(blocked_warn_s=0.05, blocked_limit_s=0.2)) as p:
        failed = await p.ask("count")
        assert failed.kind == "loop_blocked"
        assert "Own.list_tasks (test_class_tasks.py:" in failed.detail or "'list_tasks'" in failed.detail
        let_go.set()
        assert await p.ask("count") == 0
