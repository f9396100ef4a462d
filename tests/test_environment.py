"""What authors write: environments as existing code has them, their tasks, their tools, and calling them by hand."""

import asyncio
import functools
import importlib
from typing import Any

import pytest
from pydantic import BaseModel

from ors import Environment, Split, TextBlock, ToolError, ToolOutput, Toolset, ToolSpec, terminal, tool
from ors.environment import tool_table
from ors.errors import AuthoringError
from ors.types import JSONObject, ListToolsOutput, RunToolError, RunToolSuccess

pytestmark = pytest.mark.anyio


class SubmitInput(BaseModel):
    answer: str


class Sums(Environment):
    """The shape that most existing environments have."""

    def __init__(self, task_spec: JSONObject = {}, secrets: dict[str, str] = {}) -> None:
        super().__init__(task_spec)
        self.key = secrets.get("api_key")

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train", "hard"]

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        return [{"question": f"{number}+{number}", "answer": str(2 * number)} for number in range(5)]

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text=self.task_spec["question"])]  # type: ignore[arg-type]

    @tool
    def submit(self, params: SubmitInput) -> ToolOutput:
        """Submit the answer."""
        right = params.answer == self.task_spec["answer"]
        return ToolOutput(blocks=[TextBlock(text="Right" if right else "Wrong")], reward=float(right), finished=True)

    @tool(shared=False)
    async def hint(self) -> ToolOutput:
        """Give a hint."""
        return ToolOutput(blocks="think")


def small(**members: Any) -> type[Environment]:
    """An environment with a prompt and these members."""
    return type("Small", (Environment,), {"get_prompt": lambda self: "Go.", **members})


async def settled(value: Any) -> Any:
    """A value that may be awaitable."""
    return await value if hasattr(value, "__await__") else value


# An episode


async def test_an_episode_by_hand() -> None:
    env = Sums(task_spec={"question": "1+1", "answer": "2"}, secrets={"api_key": "k"})
    assert env.key == "k"
    assert env.setup() is None
    assert env.get_prompt() == [TextBlock(text="1+1")]
    result = await env._call_tool("submit", {"answer": "2"})
    assert isinstance(result, RunToolSuccess)
    assert (result.output.reward, result.output.finished) == (1.0, True)
    assert env.teardown() is None


async def test_what_unwraps_the_result_of_a_call_works() -> None:
    result = await Sums({"answer": "2"})._call_tool("submit", {"answer": "3"})
    assert result.root.ok is True
    assert result.model_dump()["output"]["reward"] == 0.0
    failed = await Sums()._call_tool("absent", {})
    assert failed.root.ok is False
    assert "not a valid tool" in failed.model_dump()["error"]


def test_the_secrets_are_not_kept_and_the_task_is() -> None:
    class Plain(Sums):
        __init__ = Environment.__init__

    env = Plain(task_spec={"a": 1}, secrets={"api_key": "hush"})
    assert env.task_spec == {"a": 1}
    assert "hush" not in repr(vars(env))


def test_get_prompt_has_to_be_written() -> None:
    with pytest.raises(TypeError, match="get_prompt"):
        Environment()  # type: ignore[abstract]


# Calls


async def test_calls_that_fail() -> None:
    class Failing(Sums):
        @tool
        def on_purpose(self) -> ToolOutput:
            raise ToolError("the door is locked")

        @tool
        def by_accident(self) -> ToolOutput:
            raise KeyError("door")

        @tool
        def garbage(self):
            return "words"

    env = Failing({"answer": "1"})
    assert await env._call_tool("absent", {}) == RunToolError(error="'absent' is not a valid tool", reason="not_found")
    assert await env._call_tool("get_prompt", {}) == RunToolError(
        error="'get_prompt' is not a valid tool", reason="not_found"
    )
    wrong = await env._call_tool("submit", {"question": "1"})
    assert wrong == RunToolError(error="Tool input validation error: answer: Field required", reason="input_validation")
    assert await env._call_tool("on_purpose", {}) == RunToolError(
        error="Tool 'on_purpose' failed: the door is locked", reason="tool_error"
    )
    with pytest.raises(KeyError):
        await env._call_tool("by_accident", {})
    with pytest.raises(TypeError, match="'garbage' returned str; expected ToolOutput"):
        await env._call_tool("garbage", {})


async def test_tools_are_sync_or_async_and_take_a_model_nothing_or_plain_parameters() -> None:
    class Many(Sums):
        @tool
        async def model(self, params: SubmitInput) -> ToolOutput:
            await asyncio.sleep(0)
            return ToolOutput(blocks=params.answer)

        @tool
        def plain(self, text: str, times: int = 2) -> ToolOutput:
            return ToolOutput(blocks=text * times)

        @tool
        def later(self) -> ToolOutput:
            return self.hint()  # type: ignore[return-value]

    env = Many()
    for name, value, text in [
        ("model", {"answer": "a"}, "a"),
        ("plain", {"text": "b"}, "bb"),
        ("plain", {"text": "b", "times": 3}, "bbb"),
        ("later", {}, "think"),
        ("hint", {}, "think"),
    ]:
        result = await env._call_tool(name, value)
        assert isinstance(result, RunToolSuccess), result
        assert result.output.blocks == [TextBlock(text=text)]


# Tools of a class


def test_listing() -> None:
    assert Sums.list_tools().model_dump() == {
        "tools": [
            {"name": "submit", "description": "Submit the answer.", "input_schema": SubmitInput.model_json_schema()}
        ]
    }
    assert list(tool_table(Sums)) == ["hint", "submit"]


async def test_a_listing_that_is_overridden_and_cached() -> None:
    class Renamed(Sums):
        @classmethod
        @functools.cache
        def list_tools(cls) -> ListToolsOutput:
            tools = [
                ToolSpec(
                    name=spec.name, description=f"{cls.__name__}: {spec.description}", input_schema=spec.input_schema
                )
                for spec in super().list_tools().tools
            ]
            return ListToolsOutput(tools=tools)

    class Again(Renamed):
        pass

    assert Renamed.list_tools() is Renamed.list_tools()
    assert [spec.description for spec in Renamed.list_tools().tools] == ["Renamed: Submit the answer."]
    assert [spec.description for spec in Again.list_tools().tools] == ["Again: Submit the answer."]
    assert isinstance(await Renamed({"answer": "1"})._call_tool("submit", {"answer": "1"}), RunToolSuccess)


def test_a_subclass_never_gets_the_table_of_its_parent() -> None:
    parent = small(one=tool(lambda self: None))
    assert list(tool_table(parent)) == ["one"]
    child = type("Child", (parent,), {"two": tool(lambda self: None)})
    assert list(tool_table(child)) == ["one", "two"]
    assert list(tool_table(parent)) == ["one"]
    assert tool_table(child) is tool_table(child)


async def test_tools_of_one_task() -> None:
    class Tasks(Sums):
        def list_task_tools(self) -> ListToolsOutput:
            return ListToolsOutput(tools=[ToolSpec(name="hint", description="now", input_schema=None)])

    assert Sums().list_task_tools() == ListToolsOutput(tools=[])
    assert [spec.name for spec in Tasks().list_task_tools().tools] == ["hint"]
    assert isinstance(await Tasks()._call_tool("hint", {}), RunToolSuccess)


@pytest.mark.parametrize("name", ["setup", "teardown", "name", "list_tools", "get_task"])
def test_a_tool_cannot_replace_a_method_that_the_server_calls(name: str) -> None:
    def method(self) -> ToolOutput: ...

    with pytest.raises(AuthoringError, match=rf"Small\.{name} is a tool with the name of a method of Environment"):
        tool_table(small(**{name: tool(method)}))


async def test_the_terminal_tool() -> None:
    class Ends(Sums):
        @terminal
        @tool
        def finish(self, params: SubmitInput) -> ToolOutput:
            """Take the final answer."""
            return ToolOutput(blocks=params.answer, finished=True)

    spec = Ends.terminal_tool()
    assert spec is not None
    assert spec.model_dump() == {"name": "finish", "arg": "answer", "description": "Take the final answer."}
    assert Ends.is_assistant_message_final()
    assert [entry.name for entry in Ends.list_tools().tools] == ["submit"]
    result = await Ends().call_terminal_tool("42")
    assert isinstance(result, RunToolSuccess)
    assert result.output.blocks == [TextBlock(text="42")]


async def test_a_terminal_tool_without_an_argument_and_none_at_all() -> None:
    cls = small(end=terminal(lambda self: ToolOutput(blocks="over")))
    result = await cls().call_terminal_tool("ignored")  # type: ignore[abstract]
    assert isinstance(result, RunToolSuccess)
    assert Sums.terminal_tool() is None
    assert not Sums.is_assistant_message_final()
    assert await Sums().call_terminal_tool("x") == RunToolError(error="Sums has no terminal tool", reason="not_found")


def test_two_terminal_tools() -> None:
    cls = small(one=terminal(lambda self: None), two=terminal(lambda self: None))
    with pytest.raises(AuthoringError, match=r"Small has 2 terminal tools \(one, two\); keep one"):
        tool_table(cls)


# Toolsets


class Notes(Toolset):
    @tool
    def note(self, text: str) -> ToolOutput:
        """Write a note."""
        self.env.notes.append(text)
        return ToolOutput(blocks=f"{len(self.env.notes)} notes")


async def test_a_toolset_is_made_once_for_each_environment_and_sees_it() -> None:
    class Noted(Sums):
        toolsets = [Notes]

        def __init__(self, task_spec: JSONObject = {}, secrets: dict[str, str] = {}) -> None:
            self.notes: list[str] = []  # and no super().__init__(): existing code forgets it

    assert [spec.name for spec in Noted.list_tools().tools] == ["submit", "note"]
    one, other = Noted(), Noted()
    for env, expected in ((one, "1 notes"), (one, "2 notes"), (other, "1 notes")):
        result = await env._call_tool("note", {"text": "x"})
        assert isinstance(result, RunToolSuccess)
        assert result.output.blocks == [TextBlock(text=expected)]
    assert one._tool_owner(tool_table(Noted)["note"]) is not other._tool_owner(tool_table(Noted)["note"])
    assert Notes.name() == "Notes"


async def test_toolsets_without_a_base_and_without_the_environment() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        @tool
        def count_up(self) -> ToolOutput:
            self.count += 1
            return ToolOutput(blocks=str(self.count))

    env = small(toolsets=(Counter,))()  # type: ignore[abstract]
    for expected in ("1", "2"):
        result = await env._call_tool("count_up", {})
        assert isinstance(result, RunToolSuccess)
        assert result.output.blocks == [TextBlock(text=expected)]


async def test_a_toolset_that_breaks_when_it_is_made_says_so() -> None:
    class Broken(Toolset):
        def __init__(self, env: Any) -> None:
            raise TypeError("no sandbox")

        @tool
        def go(self) -> ToolOutput: ...

    with pytest.raises(TypeError, match="no sandbox"):
        await small(toolsets=[Broken])()._call_tool("go", {})  # type: ignore[abstract]


def test_names_that_collide() -> None:
    class Other(Toolset):
        @tool
        def note(self) -> ToolOutput: ...

    with pytest.raises(AuthoringError, match="tool 'note' is defined by both Notes and Other; rename one"):
        tool_table(small(toolsets=[Notes, Other]))
    with pytest.raises(AuthoringError, match="tool 'note' is defined by both Small and Notes"):
        tool_table(small(toolsets=[Notes], note=tool(lambda self: None)))


# Tasks


async def test_tasks_from_a_list() -> None:
    assert await Sums.num_tasks("train") == 5
    assert await Sums.get_task("train", 4) == {"question": "4+4", "answer": "8"}
    assert await Sums.get_task_range("train", 1, 3) == Sums.list_tasks("train")[1:3]
    assert await Sums.get_task_range("train", -2) == Sums.list_tasks("train")[-2:]
    assert await Sums.get_task_range("train", 3, 100) == Sums.list_tasks("train")[3:]
    assert await Sums.get_task_range("train", 4, 1) == []


@pytest.mark.parametrize("index", [5, -1, 10**20])
async def test_an_index_outside_the_split(index: int) -> None:
    with pytest.raises(IndexError, match=f"index {index} is outside split 'train', which has 5 tasks"):
        await Sums.get_task("train", index)


async def test_an_async_list_and_one_without_a_length() -> None:
    class Async(Sums):
        @classmethod
        async def list_tasks(cls, split: str) -> Any:  # type: ignore[override]
            await asyncio.sleep(0)
            return ({"n": number} for number in range(3))

    assert await Async.num_tasks("train") == 3
    assert await Async.get_task("train", 2) == {"n": 2}
    assert await Async.get_task_range("train", 1) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("is_async", [False, True])
async def test_tasks_by_index_only(is_async: bool) -> None:
    asked: list[int] = []

    def num_tasks(cls: Any, split: str) -> int:
        return 10_000_000

    def get_task(cls: Any, split: str, index: int) -> dict[str, int]:
        asked.append(index)
        return {"n": index}

    def later(function: Any) -> Any:
        async def wrapper(*args: Any) -> Any:
            return function(*args)

        return wrapper if is_async else function

    def list_tasks(cls: Any, split: str) -> Any:
        raise NotImplementedError

    cls = small(
        num_tasks=classmethod(later(num_tasks)),
        get_task=classmethod(later(get_task)),
        list_tasks=classmethod(list_tasks),
    )
    assert await settled(cls.num_tasks("train")) == 10_000_000
    assert await cls.get_task_range("train", 5, 7) == [{"n": 5}, {"n": 6}]
    assert await cls.get_task_range("train", -1) == [{"n": 9_999_999}]
    assert asked == [5, 6, 9_999_999]


async def test_a_range_uses_get_task_where_the_author_wrote_one() -> None:
    class Richer(Sums):
        @classmethod
        def list_tasks(cls, split: str) -> Any:
            return ["only", "names"]

        @classmethod
        async def get_task(cls, split: str, index: int) -> Any:
            return {"whole": index}

    assert await Richer.get_task_range("train") == [{"whole": 0}, {"whole": 1}]


@pytest.mark.parametrize("ask", ["list_splits", "list_tasks", "num_tasks", "get_task", "get_task_range"])
async def test_what_is_not_defined_says_so(ask: str) -> None:
    args: tuple[Any, ...] = {"list_splits": (), "get_task": ("x", 0)}.get(ask, ("x",))
    with pytest.raises(NotImplementedError, match="Small does not define list_"):
        await settled(getattr(small(), ask)(*args))


def test_names() -> None:
    assert Sums.name() == "Sums"
    assert [Split.of(split).type for split in Sums.list_splits()] == ["train", "validation"]
    assert Environment.thread_affinity == "any"


def test_defining_an_environment_reads_no_signature_and_no_docstring() -> None:
    """That waits until the class is served."""
    assert "__ors_tool_table__" not in vars(small(bad=tool(lambda self, params: None)))


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("ors.environment", ["Environment", "tool"]),
        ("ors.toolset", ["Toolset"]),
        ("ors.server", ["Server"]),
        (
            "ors.types",
            [
                *("TextBlock", "ImageBlock", "Blocks", "ToolOutput", "ToolSpec", "ListToolsOutput", "ToolCall"),
                *("RunToolSuccess", "RunToolError", "RunToolOutput", "CreateSession", "ListTasks", "NumTasks"),
                *("GetTask", "GetTaskRange", "Split", "SplitType", "JSONObject", "JSONValue"),
            ],
        ),
    ],
)
def test_where_existing_code_imports_from(module: str, names: list[str]) -> None:
    found = importlib.import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []
