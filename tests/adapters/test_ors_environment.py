"""`ors.Environment` classes as sessions: all sync or async, whatever is raised, a teardown for every instance."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from ors import (
    AuthoringError,
    Environment,
    ListToolsOutput,
    ToolError,
    ToolOutput,
    ToolSpec,
    tool,
)
from ors.adapters.ors_environment import ORSOffering
from ors.runtime import RuntimeOptions
from ors.runtime.lanes import CutError

from .play import Plain, kind, played, said, until

pytestmark = pytest.mark.anyio


class Sync(Plain):
    """Every method as `def`."""

    events: list[str] = []

    def setup(self) -> Any:
        self.events.append("setup")

    def teardown(self) -> Any:
        self.events.append("teardown")

    def get_prompt(self) -> Any:
        self.events.append("prompt")
        return "Prompt."

    def list_task_tools(self) -> Any:
        self.events.append("task tools")
        return ListToolsOutput(tools=[ToolSpec(name="hidden", description="", input_schema=None)])

    @tool(shared=False)
    def hidden(self) -> ToolOutput:
        return said("hidden")

    @tool
    def add(self, a: int, b: int = 1) -> ToolOutput:
        return said(a + b, reward=float(a))


class Async(Plain):
    """Every method as `async def`."""

    events: list[str] = []

    @classmethod
    async def list_splits(cls) -> Any:
        return ["train"]

    @classmethod
    async def list_tasks(cls, split: str) -> Any:
        return [{"number": number} for number in range(3)]

    async def setup(self) -> Any:
        await asyncio.sleep(0)
        self.events.append("setup")

    async def teardown(self) -> Any:
        await asyncio.sleep(0)
        self.events.append("teardown")

    async def get_prompt(self) -> Any:
        self.events.append("prompt")
        return "Prompt."

    async def list_task_tools(self) -> Any:
        self.events.append("task tools")
        return [ToolSpec(name="hidden", description="", input_schema=None)]

    @tool(shared=False)
    async def hidden(self) -> ToolOutput:
        return said("hidden")

    @tool
    async def add(self, a: int, b: int = 1) -> ToolOutput:
        return said(a + b, reward=float(a))


class Mixed(Async):
    """`def` methods that return something to await."""

    events: list[str] = []

    def setup(self) -> Any:
        return super().setup()

    def teardown(self) -> Any:
        return super().teardown()

    def get_prompt(self) -> Any:
        return super().get_prompt()

    def list_task_tools(self) -> Any:
        return super().list_task_tools()

    @tool
    def add(self, a: int, b: int = 1) -> ToolOutput:
        return super().add(a, b)  # type: ignore[return-value]


@pytest.mark.parametrize("cls", [Sync, Async, Mixed])
@pytest.mark.parametrize("affinity", ["any", "session", "class"])
async def test_every_method_may_be_either(cls: Any, affinity: str) -> None:
    class Placed(cls):  # type: ignore[misc]
        thread_affinity = affinity
        events: list[str] = []

    async with played(Placed) as p:
        assert await p.ask("count") == 3
        episode = await p.open(index=1)
        assert await episode.ask("prompt") == [{"text": "Prompt.", "detail": None, "type": "text"}]
        assert [spec["name"] for spec in await episode.ask("tools")] == ["add", "go", "hidden"]
        output = await episode.call("add", a=2)
        assert (output["blocks"][0]["text"], output["reward"]) == ("3", 2.0)
        assert await episode.text("hidden") == "hidden"
        assert kind(await episode.call("add", a="x")) == "invalid_input"
        assert kind(await episode.call("setup")) == "unknown_tool"
        await episode.end()
        assert Placed.events[:3] == ["setup", "prompt", "task tools"]
        assert Placed.events[-1] == "teardown" and Placed.events.count("teardown") == 1


@pytest.mark.parametrize("affinity", ["session", "class"])
async def test_affinity_keeps_synchronous_code_on_its_thread(affinity: str) -> None:
    listed = set[int]()

    class Placed(Plain):
        thread_affinity = affinity

        def __init__(self, task_spec: Any = {}, secrets: Any = {}) -> None:
            super().__init__(task_spec)
            self.threads = {threading.get_ident()}

        def setup(self) -> None:
            self.threads.add(threading.get_ident())

        def get_prompt(self) -> Any:
            self.threads.add(threading.get_ident())
            return ""

        @classmethod
        def list_tasks(cls, split: str) -> Any:
            listed.add(threading.get_ident())
            return [{}]

        @tool
        def where(self) -> ToolOutput:
            self.threads.add(threading.get_ident())
            return said(sorted(self.threads))

    async with played(Placed) as p:
        seen = []
        for _ in range(2):
            episode = await p.open(index=0)
            await episode.ask("prompt")
            seen.append(await episode.text("where"))
        assert all("," not in threads for threads in seen)
        assert (seen[0] == seen[1]) is (affinity == "class")
        assert (seen[0] == str(sorted(listed))) is (affinity == "class")


@pytest.mark.parametrize("later", [False, True])
async def test_whatever_a_tool_raises_is_its_own_answer(later: bool) -> None:
    class Deep(BaseException):
        def __str__(self) -> str:
            raise ValueError("no words")

    raised: dict[str, BaseException] = {
        "CancelledError": asyncio.CancelledError(),
        "SystemExit: 3": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "GeneratorExit": GeneratorExit(),
        "MemoryError: all of it": MemoryError("all of it"),
        "KeyError: 'a'": KeyError("a"),
        "ExceptionGroup: both (1 sub-exception)": ExceptionGroup("both", [ValueError()]),
        "CutError": CutError(),
        "Deep (its message cannot be shown: it raised)": Deep(),
    }

    class Raising(Plain):
        @tool
        def fail(self, which: str) -> ToolOutput:
            raise raised[which]

        @tool
        async def fail_later(self, which: str) -> ToolOutput:
            await asyncio.sleep(0)
            raise raised[which]

        @tool
        def refuse(self) -> ToolOutput:
            raise ToolError("the door is locked")

        @tool
        def recurse(self) -> ToolOutput:
            return self.recurse()

    async with played(Raising) as p:
        episode = await p.open(index=0)
        for words in raised:
            failed = await episode.call("fail_later" if later else "fail", which=words)
            assert (failed.kind, failed.detail, failed.ran) == ("tool_failed", words, "yes")
        refused = await episode.call("refuse")
        assert (refused.kind, refused.detail) == ("tool_error", "Tool 'refuse' failed: the door is locked")
        assert (await episode.call("recurse")).detail.startswith("RecursionError")
        assert await episode.text("go") == "done"
        raised.clear()


@pytest.mark.parametrize("stage", ["__init__", "setup"])
@pytest.mark.parametrize("later", [False, True])
async def test_an_instance_whose_setup_fails_is_torn_down(stage: str, later: bool) -> None:
    events = list[str]()

    class Failing(Plain):
        def __init__(self, task_spec: Any = {}, secrets: Any = {}) -> None:
            super().__init__(task_spec)
            if stage == "__init__":
                raise SystemExit("no licence")

        async def _fail(self) -> None:
            raise asyncio.CancelledError("no database")

        def setup(self) -> Any:
            if later:
                return self._fail()
            raise asyncio.CancelledError("no database")

        def teardown(self) -> None:
            events.append("teardown")

    async with played(Failing) as p:
        episode = await p.open(index=0)
        failed = await episode.ask("prompt")
        words = "SystemExit: no licence" if stage == "__init__" else "CancelledError: no database"
        assert (failed.kind, failed.detail) == ("setup_failed", words)
        await episode.end()
        assert events == (["teardown"] if stage == "setup" else [])


@pytest.mark.parametrize("later", [False, True])
async def test_an_instance_that_comes_about_after_it_was_given_up_is_torn_down(later: bool) -> None:
    events, reached, let_go = list[str](), threading.Event(), threading.Event()

    class Slow(Plain):
        def __init__(self, task_spec: Any = {}, secrets: Any = {}) -> None:
            super().__init__(task_spec)
            reached.set()
            while not let_go.is_set():
                try:
                    time.sleep(0.005)
                except CutError:
                    events.append("ignored the cut")

        def setup(self) -> None:
            events.append("setup")

        async def _tear_down(self) -> None:
            await asyncio.sleep(0)
            events.append("teardown")

        def teardown(self) -> Any:
            if later:
                return self._tear_down()
            events.append("teardown")
            return None

    async with played(Slow, runtime=RuntimeOptions(grace_s=0.05)) as p:
        episode = await p.open(index=0)
        await until(reached.is_set)
        await episode.end()
        assert events == ["ignored the cut"]
        let_go.set()
        await until(lambda: events[-1] == "teardown")
        assert events == ["ignored the cut", "teardown"]


async def test_a_setup_that_is_cut_and_then_fails_is_torn_down_once() -> None:
    events, reached = list[str](), threading.Event()

    class Slow(Plain):
        def setup(self) -> None:
            reached.set()
            while True:
                time.sleep(0.002)

        def teardown(self) -> None:
            events.append("teardown")

    async with played(Slow) as p:
        episode = await p.open(index=0)
        await until(reached.is_set)
        await episode.end()
        assert events == ["teardown"]


async def test_secrets_and_task_reach_the_constructor_by_name() -> None:
    class Named(Plain):
        def __init__(self, *, secrets: dict[str, str], task_spec: Any) -> None:
            super().__init__(task_spec)
            self.secrets = secrets

        @tool
        def look(self) -> ToolOutput:
            return said(f"{self.secrets} {self.task_spec}")

    class Nothing(Plain):
        def __init__(self) -> None:
            super().__init__({"own": True})

        @tool
        def look(self) -> ToolOutput:
            return said(self.task_spec)

    class Anything(Plain):
        def __init__(self, **given: Any) -> None:
            super().__init__()
            self.given = given

        @tool
        def look(self) -> ToolOutput:
            return said(sorted(self.given))

    async with played(Named, Nothing, Anything) as p:
        given: dict[str, Any] = {"task": {"n": 1}, "secrets": {"key": "value"}}
        assert await (await p.open(env="Named", **given)).text("look") == "{'key': 'value'} {'n': 1}"
        assert await (await p.open(env="Nothing", **given)).text("look") == "{'own': True}"
        assert await (await p.open(env="Anything", **given)).text("look") == "['secrets', 'task_spec']"

    class Demanding(Plain):
        def __init__(self, task_spec: Any, database: str) -> None:
            super().__init__(task_spec)

    with pytest.raises(AuthoringError, match="Demanding.__init__ needs database"):
        ORSOffering(Demanding)


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (Environment, "Environment does not define get_prompt"),
        (int, "is no ors.Environment class"),
        (Plain(), "pass the class itself, not an instance"),
        (type("Odd", (Plain,), {"thread_affinity": "none"}), "Odd.thread_affinity is 'none'"),
        (type("Bare", (Plain,), {"go": None}), "Environment 'Bare' has no tools defined"),
    ],
)
def test_what_cannot_be_served_is_named(cls: Any, words: str) -> None:
    with pytest.raises(AuthoringError, match=words):
        ORSOffering(cls)
