"""What an environment's author subclasses: `Environment`, and `Toolset` for tools that several environments share."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ors.errors import AuthoringError, ToolError
from ors.tasks.source import is_source
from ors.tools import InvalidInput, ToolDefinition, tool, tools_of
from ors.types import (
    JSONObject,
    ListToolsOutput,
    RunToolError,
    RunToolSuccess,
    TerminalToolSpec,
    ToolOutput,
)

if TYPE_CHECKING:
    from ors.tasks.methods import TaskMethods

__all__ = ["Environment", "Toolset", "tool", "tool_table"]


class Toolset(ABC):  # noqa: B024 - abstract by intent: it is only ever subclassed
    """A group of tools that environments declare with `toolsets = [MyToolset]`; `self.env` is the environment."""

    def __init__(self, env: Any) -> None:
        self.env = env

    @classmethod
    def name(cls) -> str:
        """The name of the toolset: the class's."""
        return cls.__name__


class Environment(ABC):
    """One episode of one task.

    Write `get_prompt` and at least one `@tool`. Say where its tasks are with `tasks = …`, a source of `ors.tasks`; or
    write `list_splits`, and either `list_tasks` or the pair `num_tasks` and `get_task`. What is written wins over the
    source, and the rest follows from both. Every method may be `def` or `async def`.

    The server makes one instance for each session, by keywords:
    `cls(task_spec=..., secrets=...)`; then it calls `setup`, the tools, and always `teardown`.
    """

    toolsets: ClassVar[Sequence[type]] = ()
    """Toolset classes whose tools are this environment's too."""

    thread_affinity: ClassVar[Literal["any", "session", "class"]] = "any"
    """Where synchronous code runs: on any thread, on one thread for each session, or on one for the whole class."""

    list_limit: ClassVar[int | None] = None
    """How many tasks a listing of a split shows at most; counts and indices stay true. None: all of them."""

    task_spec: JSONObject

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        declared = vars(cls).get("tasks")
        if declared is not None and is_source(declared):
            # a source that is declared here stands before the methods of parents, as a method written here would
            for name in ("list_splits", "list_tasks", "num_tasks", "get_task", "get_task_range"):
                if name not in vars(cls) and inspect.getattr_static(cls, name) is not vars(Environment)[name]:
                    setattr(cls, name, vars(Environment)[name])

    def __init__(self, task_spec: JSONObject = {}, secrets: dict[str, str] = {}) -> None:  # noqa: B006 - never changed
        self.task_spec = task_spec

    # The episode

    def setup(self) -> Any:
        """Prepare the episode; runs once, before anything else is asked of the instance. May be async."""

    def teardown(self) -> Any:
        """Release what the episode holds; runs once, whenever the constructor ran. May be async."""

    @abstractmethod
    def get_prompt(self) -> Any:
        """Return the prompt: blocks, text, images, or a list of these. Asked for once per episode. May be async."""

    def list_task_tools(self) -> Any:
        """Return the tools (`ListToolsOutput`) that this task has beside the shared ones. May be async."""
        return ListToolsOutput(tools=[])

    # The tasks

    @classmethod
    def list_splits(cls) -> Any:
        """Return the splits: `Split` objects or names. May be async (spec: Splits)."""
        return _tasks_of(cls, "list_splits").splits()

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        """Return every task of a split. May be async. Leave it out when there are too many to list."""
        return _tasks_of(cls, "list_tasks").all(split)

    @classmethod
    async def num_tasks(cls, split: str) -> int:
        """Return how many tasks a split has; by default the source's count, or counted with `list_tasks`."""
        count = await _settle(_tasks_of(cls, "num_tasks").count(split))
        if count is None:
            raise NotImplementedError(f"nobody knows how many tasks split {split!r} of {cls.__name__} has")
        return int(count)

    @classmethod
    async def get_task(cls, split: str, index: int) -> Any:
        """Return the task at `index`; by default the source's, or picked from `list_tasks`.

        Raises IndexError outside the split.
        """
        return await _settle(_tasks_of(cls, "get_task").get(split, index))

    @classmethod
    async def get_task_range(cls, split: str, start: int | None = None, stop: int | None = None) -> Any:
        """Return the tasks of a Python slice; by default from `get_task` where it is overridden."""
        return await _settle(_tasks_of(cls, "get_task_range").slice(split, start, stop))

    # The tools

    @classmethod
    def name(cls) -> str:
        """The environment's name on the server: the class's."""
        return cls.__name__

    @classmethod
    def list_tools(cls) -> ListToolsOutput:
        """Return the tools that every task has."""
        return ListToolsOutput(tools=[entry.spec for entry in tool_table(cls).values() if entry.marks.shared])

    @classmethod
    def terminal_tool(cls) -> TerminalToolSpec | None:
        """Return the tool that takes the agent's final message, if there is one."""
        return next((entry.terminal_spec() for entry in tool_table(cls).values() if entry.marks.terminal), None)

    @classmethod
    def is_assistant_message_final(cls) -> bool:
        """Whether an assistant message without tool calls ends the episode: there is a terminal tool to take it."""
        return cls.terminal_tool() is not None

    async def call_terminal_tool(self, message: str = "") -> RunToolSuccess | RunToolError:
        """Call the terminal tool with the agent's final message."""
        spec = self.terminal_tool()
        if spec is None:
            return RunToolError(error=f"{type(self).__name__} has no terminal tool", reason="not_found")
        return await self._call_tool(spec.name, {spec.arg: message} if spec.arg else {})

    async def _call_tool(self, name: str, input: Mapping[str, Any]) -> RunToolSuccess | RunToolError:
        """Call a tool by its name, as the server does; what an author's tests and other hosts use.

        Unknown tools, bad input and `ToolError` come back as `RunToolError`; any other exception is raised.
        """
        entry = tool_table(type(self)).get(name)
        if entry is None:
            return RunToolError(error=f"'{name}' is not a valid tool", reason="not_found")
        try:
            args, kwargs = entry.arguments(input)
        except InvalidInput as exc:
            return RunToolError(error=str(exc), reason="input_validation")
        try:
            output = await _settle(getattr(self._tool_owner(entry), name)(*args, **kwargs))
        except ToolError as exc:
            return RunToolError(error=f"Tool '{name}' failed: {exc}", reason="tool_error")
        if not isinstance(output, ToolOutput):
            raise TypeError(f"'{name}' returned {type(output).__name__}; expected ToolOutput")
        return RunToolSuccess(output=output)

    def _tool_owner(self, entry: ToolDefinition) -> Any:
        """The object whose method a tool is: this environment, or its toolset, made when first needed."""
        if isinstance(self, entry.owner):
            return self
        made: dict[type, Any] = self.__dict__.setdefault("_toolset_instances", {})
        if entry.owner not in made:
            # two calls may come here at once, on two threads: both then use the one that was first
            made.setdefault(entry.owner, entry.owner(self) if _takes_env(entry.owner) else entry.owner())
        return made[entry.owner]


def tool_table(cls: type[Environment]) -> dict[str, ToolDefinition]:
    """Every tool of an environment class by name: its own, then its toolsets'. Kept per class, never inherited.

    Raises AuthoringError for names that collide, tools that cannot be tools, and more than one terminal tool.
    """
    table: dict[str, ToolDefinition] | None = cls.__dict__.get("__ors_tool_table__")
    if table is None:
        table = dict(tools_of(cls))
        for name in sorted(table.keys() & vars(Environment).keys()):
            raise AuthoringError(f"{cls.__name__}.{name} is a tool with the name of a method of Environment; rename it")
        for toolset in cls.toolsets:
            for name, entry in tools_of(toolset).items():
                if name in table:
                    raise AuthoringError(
                        f"tool '{name}' is defined by both {table[name].owner.__name__} and {toolset.__name__}; "
                        f"rename one of them"
                    )
                table[name] = entry
        terminals = [name for name, entry in table.items() if entry.marks.terminal]
        if len(terminals) > 1:
            names = ", ".join(terminals)
            raise AuthoringError(f"{cls.__name__} has {len(terminals)} terminal tools ({names}); keep one")
        cls.__ors_tool_table__ = table  # type: ignore[attr-defined]
    return table


def _takes_env(toolset: type) -> bool:
    try:
        inspect.signature(toolset).bind(None)
    except TypeError:
        return False
    except ValueError:  # it has no signature that can be read
        return True
    return True


async def _settle(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _tasks_of(cls: type[Environment], without: str) -> TaskMethods:
    """The tasks of a class, as the method `without` of Environment answers for them."""
    from ors.tasks.methods import TaskMethods

    return TaskMethods(cls, Environment, without)
