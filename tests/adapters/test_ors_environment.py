"""`ors.Environment` classes as sessions: all sync or async, whatever is raised, a teardown for every instance."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from typing import Any

import pytest

from ors import (
    AuthoringError,
    Environment,
    ListToolsOutput,
    RunToolError,
    RunToolSuccess,
    ToolError,
    ToolOutput,
    Toolset,
    ToolSpec,
    terminal,
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


# Tools


async def test_what_is_listed_for_a_session_can_be_called_in_it_and_nothing_else() -> None:
    class Listing(Plain):
        secret = "value"

        @classmethod
        def helper(cls) -> ToolOutput:
            return said("helped")

        @property
        def trap(self) -> Any:
            raise AssertionError("a property was reached by its name")

        def list_task_tools(self) -> Any:
            if self.task_spec["number"] == 0:
                return ListToolsOutput(tools=[])
            return ListToolsOutput(tools=[ToolSpec(name="extra", description="for this task", input_schema=None)])

        @tool(shared=False)
        def extra(self) -> ToolOutput:
            return said("extra")

        @tool(shared=False)
        def other(self) -> ToolOutput:
            return said("other")

        @terminal
        @tool
        def answer(self, message: str) -> ToolOutput:
            return said(message, finished=True)

    async with played(Listing) as p:
        bare, rich = await p.open(index=0), await p.open(index=1)
        for name in ("helper", "trap", "secret", "setup", "teardown", "__init__", "_call_tool", "other", "x" * 10_000):
            for episode in (bare, rich):
                outcome = await episode.call(name)
                assert kind(outcome) == "unknown_tool" and len(outcome.detail) < 300
        assert kind(await bare.call("extra")) == "unknown_tool"
        assert await rich.text("extra") == "extra"
        assert [spec["name"] for spec in await rich.ask("tools")] == ["go", "extra"]
        assert await rich.text("answer", message="bye") == "bye"
        assert kind(await rich.call("go")) == "episode_finished"


async def test_hidden_tools_are_listed_where_the_author_says_nothing_of_tasks() -> None:
    class Quiet(Plain):
        @tool(shared=False)
        def extra(self) -> ToolOutput:
            return said("extra")

    async with played(Quiet) as p:
        episode = await p.open(index=0)
        assert b"extra" not in p.host.offerings()["quiet"].tools
        assert await episode.text("extra") == "extra"
        assert [spec["name"] for spec in await episode.ask("tools")] == ["go", "extra"]


@pytest.mark.parametrize("answer", [None, 5, "tools", [{"name": "x", "other": 1}], [{"description": "nameless"}]])
async def test_task_tools_that_are_none_are_named(answer: Any) -> None:
    class Garbled(Plain):
        def list_task_tools(self) -> Any:
            return answer

        @tool(shared=False)
        def extra(self) -> ToolOutput:
            return said("extra")

    async with played(Garbled) as p:
        episode = await p.open(index=0)
        assert kind(await episode.ask("tools")) == "bad_output"
        assert kind(await episode.call("extra")) == "bad_output"
        assert await episode.text("go") == "done"


async def test_task_tools_are_named_once() -> None:
    class Doubled(Plain):
        def list_task_tools(self) -> Any:
            again = ToolSpec(name="go", description="another", input_schema=None)
            return [again, ToolSpec(name="absent", description="", input_schema=None)]

    async with played(Doubled) as p:
        episode = await p.open(index=0)
        tools = await episode.ask("tools")
        assert [spec["name"] for spec in tools] == ["go", "absent"]
        assert tools[0]["description"] == "Go."
        failed = await episode.call("absent")
        assert failed.detail == "'absent' is listed, but Doubled has no such tool"


async def test_toolsets_are_made_once_for_an_instance() -> None:
    class Counter(Toolset):
        made = 0

        def __init__(self, env: Any) -> None:
            super().__init__(env)
            type(self).made += 1
            self.count = 0

        @tool
        def count_up(self, by: int = 1) -> ToolOutput:
            self.count += by
            return said(f"{self.count} of {self.env.task_spec['number']}")

        @tool
        async def count_later(self) -> ToolOutput:
            return self.count_up()

    class Bare(Toolset):
        def __init__(self) -> None:
            self.env = None

        @tool
        def bare(self) -> ToolOutput:
            return said("bare")

    class Equipped(Plain):
        toolsets = [Counter, Bare]

    async with played(Equipped) as p:
        one, two = await p.open(index=1), await p.open(index=2)
        assert [spec["name"] for spec in await one.ask("tools")] == ["go", "count_later", "count_up", "bare"]
        assert await one.text("count_up", by=2) == "2 of 1"
        assert await one.text("count_later") == "3 of 1"
        assert await two.text("count_up") == "1 of 2"
        assert await one.text("bare") == "bare"
        assert Counter.made == 2


# Authors who route calls themselves


async def test_a_call_tool_of_the_authors_own() -> None:
    class Routed(Plain):
        @classmethod
        def list_tools(cls) -> ListToolsOutput:
            schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
            return ListToolsOutput(
                tools=[
                    ToolSpec(name="remote", description="", input_schema=schema),
                    ToolSpec(name="form", description="", input_schema=None),
                ]
            )

        async def _call_tool(self, name: str, input: Any) -> Any:
            if name == "form":
                return said("an output")
            if input["x"] == 0:
                return RunToolError(error="zero", reason="tool_error")
            if input["x"] == 1:
                return RunToolError(error="no such thing", reason="not_found")
            if input["x"] == 2:
                raise ToolError("on purpose")
            if input["x"] == 3:
                return "garbage"
            if input["x"] == 4:
                raise asyncio.CancelledError
            return RunToolSuccess(output=said(f"x = {input['x']}", reward=1.0, finished=True))

    async with played(Routed) as p:
        episode = await p.open(index=0)
        assert await episode.text("form") == "an output"
        wrong = await episode.call("remote", x="text")
        assert wrong.detail == "Tool input validation error: x: does not fit its schema (type)"
        assert kind(await episode.call("form", y=1)) == "invalid_input"
        kinds = [kind(await episode.call("remote", x=x)) for x in range(5)]
        assert kinds == ["tool_error", "unknown_tool", "tool_error", "bad_output", "tool_failed"]
        assert kind(await episode.call("go")) == "unknown_tool"
        assert await episode.text("remote", x=9) == "x = 9"
        assert kind(await episode.call("form")) == "episode_finished"


@pytest.mark.parametrize("later", [False, True])
async def test_a_call_tool_keeps_the_marks_of_its_tools(later: bool) -> None:
    inside, most = set[str](), list[int]()

    class Logged(Plain):
        @tool(timeout=0.1)
        async def slow(self) -> ToolOutput:
            await asyncio.sleep(30)
            return said()

        @tool
        async def one(self) -> ToolOutput:
            inside.add("one")
            while "two" not in inside:
                await asyncio.sleep(0.002)
            return said("one")

        @tool
        async def two(self) -> ToolOutput:
            inside.add("two")
            return said("two")

    if later:

        class Env(Logged):
            async def _call_tool(self, name: str, input: Any) -> Any:
                return await super()._call_tool(name, input)
    else:

        class Env(Logged):  # type: ignore[no-redef]
            def _call_tool(self, name: str, input: Any) -> Any:
                most.append(threading.get_ident())
                return super()._call_tool(name, input)

    async with played(Env) as p:
        episode = await p.open(index=0)
        assert kind(await episode.call("slow")) == "tool_timeout"
        if later:
            assert await asyncio.gather(episode.text("one"), episode.text("two")) == ["one", "two"]
        else:
            assert await episode.text("two") == "two"
            assert threading.get_ident() not in most, "a `def` ran on the server's event loop"


async def test_a_list_of_tools_may_be_written_anew() -> None:
    class Rewritten(Plain):
        @classmethod
        @functools.cache
        def list_tools(cls) -> ListToolsOutput:
            listed = super().list_tools()
            return ListToolsOutput(tools=[spec.model_copy(update={"description": "new"}) for spec in listed.tools])

    async with played(Rewritten) as p:
        episode = await p.open(index=0)
        assert [spec["description"] for spec in await episode.ask("tools")] == ["new"]
        assert await episode.text("go") == "done"


# Sessions of a blocked loop


async def test_sessions_whose_loop_is_blocked_are_lost_and_the_next_are_served() -> None:
    let_go, events = threading.Event(), list[str]()

    class Blocking(Plain):
        def teardown(self) -> None:
            events.append(f"teardown {self.task_spec['number']}")

        @tool
        async def block(self) -> ToolOutput:
            let_go.wait(30)
            return said("blocked")

        @tool
        async def wait(self) -> ToolOutput:
            return said("waited")

    options = RuntimeOptions(blocked_warn_s=0.05, blocked_limit_s=0.25, grace_s=0.1)
    async with played(Blocking, runtime=options) as p:
        one, other, unused = [await p.open(index=index) for index in range(3)]
        assert await other.text("wait") == "waited"
        blocked = asyncio.ensure_future(one.outcome("block"))
        await asyncio.sleep(0.02)
        waiting = asyncio.ensure_future(other.outcome("wait"))
        for lost in (await blocked, await waiting):
            assert kind(lost) == "loop_blocked"
            assert lost.detail.startswith("'block' in ")
        for episode in (one, other):
            assert kind(await episode.ask("prompt")) == "session_ended"
        await until(lambda: sorted(events) == ["teardown 0", "teardown 1"])
        # a session that never used the loop lives, and gets a new one
        assert await unused.text("wait") == "waited"
        assert await (await p.open(index=0)).text("wait") == "waited"
        assert [name.startswith("'block' in ") for name in (await p.host.status())["zombies"]] == [True]
        let_go.set()
        assert isinstance(await unused.ask("prompt"), list)
        for _ in range(2000):
            if not (await p.host.status())["zombies"]:
                break
            await asyncio.sleep(0.005)
        assert (await p.host.status())["zombies"] == []


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
