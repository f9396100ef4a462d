"""An environment of a server: its splits, tasks and tools, and sessions of its tasks. One request for each question."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ors.client import gathering
from ors.client.answers import terminal_of, tools_of
from ors.client.async_task_sequence import AsyncTaskSequence
from ors.client.endpoint import Endpoint, segment
from ors.client.gathering import Episode, Which
from ors.client.sequence import PAGE
from ors.client.session import AsyncSession, _converted
from ors.client.tasks import SplitName, Task, split_of
from ors.errors import ProtocolError
from ors.types import TerminalToolSpec, ToolSpec

if TYPE_CHECKING:
    from ors.client.formats import Provider

__all__ = ["AsyncEnvironment"]

_T = TypeVar("_T")


class AsyncEnvironment:
    """One environment of one server. It holds no connection and can be pickled."""

    def __init__(self, name: str, client: Endpoint, api_key: str | None = None) -> None:
        self.name = name
        self._endpoint = client
        self._api_key = api_key
        self._path = f"/{segment(name)}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} at {self._endpoint.base_url}>"

    async def list_splits(self) -> list[SplitName]:
        """The names of the splits; each knows its `type`."""
        value = await self._get("/splits")
        try:
            return [split_of(item) for item in value]
        except (TypeError, KeyError, ValueError) as exc:
            raise ProtocolError(f"GET {self._path}/splits answered no list of splits", kind="bad_answer") from exc

    async def list_tasks(self, split: str) -> list[Task]:
        """All tasks of a split."""
        return self._tasks(await self._post("/tasks", {"split": split}), split, 0)

    async def num_tasks(self, split: str) -> int:
        """How many tasks a split has."""
        return int(self._field(await self._post("/num_tasks", {"split": split}), "num_tasks", int))

    async def get_task(self, split: str, index: int) -> Task:
        """The task at an index of a split."""
        answer = await self._post("/task", {"split": split, "index": index})
        spec = self._field(answer, "task", dict)
        return Task(answer.get("env_name") or self.name, spec, split=str(split), index=index)

    async def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Task]:
        """A slice of the tasks of a split, `stop` exclusive; negative bounds count from the end."""
        bounds = {name: value for name, value in (("start", start), ("stop", stop)) if value is not None}
        answer = await self._post("/task_range", {"split": split, **bounds})
        return self._tasks(answer, split, start if start is None or start >= 0 else -1)

    async def tasks(self, split: str, *, page: int = PAGE) -> AsyncTaskSequence:
        """The tasks of a split as a sequence: shuffled, sharded, gone through page by page (`page` tasks at once)."""
        return await AsyncTaskSequence.of(self, split, page)

    @overload
    async def list_tools(self, format: None = None) -> list[ToolSpec]: ...
    @overload
    async def list_tools(self, format: Provider) -> list[dict[str, Any]]: ...
    async def list_tools(self, format: Provider | None = None) -> list[ToolSpec] | list[dict[str, Any]]:
        """The tools that every task has, as `ToolSpec`s or in the format of a model provider."""
        tools = tools_of(await self._get("/tools"), f"GET {self._path}/tools")
        return tools if format is None else _converted(tools, format)

    async def terminal_tool(self) -> TerminalToolSpec | None:
        """The tool that takes the agent's final message, if the environment has one."""
        return terminal_of(await self._get("/tools"))

    def session(
        self,
        task: Task | Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        *,
        split: str | None = None,
        index: int | None = None,
        toolset: str | None = None,
    ) -> AsyncSession:
        """An episode of a task, given in full or by its place; open it with `async with`.

        toolset: the name of a toolset that the server shall add; it is the server that knows which there are.
        """
        return AsyncSession(self, task, secrets, self._api_key, split, index, toolset)

    def as_ended(
        self,
        play: Callable[[AsyncSession], Awaitable[_T]],
        tasks: Iterable[Which],
        *,
        concurrency: int = 64,
        secrets: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Episode[_T]]:
        """Play many tasks, `concurrency` at once, and yield what became of each in the order in which they end.

        `play` gets an open session. What it raises is the `error` of its episode and stops no other.
        """
        return gathering.as_ended(self, play, tasks, concurrency, secrets)

    async def gather(
        self,
        play: Callable[[AsyncSession], Awaitable[_T]],
        tasks: Iterable[Which],
        *,
        concurrency: int = 64,
        secrets: Mapping[str, str] | None = None,
    ) -> list[Episode[_T]]:
        """The same, all of them, in the order of the tasks."""
        ended = [episode async for episode in self.as_ended(play, tasks, concurrency=concurrency, secrets=secrets)]
        return sorted(ended, key=lambda episode: episode.number)

    async def _get(self, path: str) -> Any:
        return await self._endpoint.value("GET", self._path + path, headers=self._headers())

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        return await self._endpoint.value("POST", self._path + path, body, headers=self._headers())

    def _headers(self) -> dict[str, str] | None:
        return {"X-API-Key": self._api_key} if self._api_key else None

    def _tasks(self, answer: Any, split: str, first: int | None) -> list[Task]:
        specs = self._field(answer, "tasks", list)
        name = answer.get("env_name") or self.name
        known = first is None or first >= 0
        return [
            Task(name, spec, split=str(split), index=(first or 0) + place if known else None)
            for place, spec in enumerate(specs)
        ]

    def _field(self, answer: Any, name: str, kind: type) -> Any:
        value = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(value, kind):
            raise ProtocolError(f"the environment {self.name!r} answered without {name!r}", kind="bad_answer")
        return value
