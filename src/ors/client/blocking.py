"""The synchronous client: the asynchronous one, run in a thread of its own for each process.

So sessions are kept alive while the caller thinks, any thread may use any handle, and a running event loop (a notebook)
is no obstacle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ors.client import gathering
from ors.client.client import AsyncEnvironmentsAPI
from ors.client.environment import AsyncEnvironment
from ors.client.gathering import Episode, Which
from ors.client.portal import portal
from ors.client.retrying import Retry
from ors.client.rewards import Rewards
from ors.client.sequence import PAGE
from ors.client.session import AsyncSession
from ors.client.task_sequence import TaskSequence
from ors.client.tasks import SplitName, Task
from ors.types import ImageBlock, JSONValue, TerminalToolSpec, TextBlock, ToolOutput, ToolSpec

if TYPE_CHECKING:
    from ors.client.formats import Provider

__all__ = ["ORS", "Environment", "EnvironmentsAPI", "Session"]

_T = TypeVar("_T")


class Session:
    """One episode; `with` opens and ends it."""

    def __init__(self, async_session: AsyncSession, loop: Any = None) -> None:
        self._inner = async_session

    def __repr__(self) -> str:
        return repr(self._inner).replace("AsyncSession", "Session")

    def __enter__(self) -> Session:
        portal().run(self._inner.__aenter__())
        return self

    def __exit__(self, *exc: object) -> None:
        portal().run(self._inner.__aexit__(*exc))

    def close(self) -> None:
        """End the episode on the server."""
        portal().run(self._inner.close())

    @property
    def sid(self) -> str | None:
        """The session's id."""
        return self._inner.sid

    @property
    def task_key(self) -> str | None:
        """What identifies the task wherever it stands, where the server says that."""
        return self._inner.task_key

    @property
    def task(self) -> Task | None:
        """The task, where one was given."""
        return self._inner.task

    @property
    def rewards(self) -> Rewards:
        """What the calls paid so far."""
        return self._inner.rewards

    @property
    def finished(self) -> bool:
        """Whether a call has ended the episode."""
        return self._inner.finished

    def get_prompt(self) -> list[TextBlock | ImageBlock]:
        """The prompt. It is asked for once."""
        return portal().run(self._inner.get_prompt())

    @overload
    def list_tools(self, format: None = None) -> list[ToolSpec]: ...
    @overload
    def list_tools(self, format: Provider) -> list[dict[str, Any]]: ...
    def list_tools(self, format: Provider | None = None) -> list[ToolSpec] | list[dict[str, Any]]:
        """The tools of this task, as `ToolSpec`s or in the format of a model provider."""
        return portal().run(self._inner.list_tools(format))  # type: ignore[return-value]

    def terminal_tool(self) -> TerminalToolSpec | None:
        """The tool that takes the agent's final message, if the environment has one."""
        return portal().run(self._inner.terminal_tool())

    def call_tool(self, tool_name: str, input: Mapping[str, JSONValue] = {}) -> ToolOutput:
        """Call a tool; see `AsyncSession.call_tool` for what it raises."""
        return portal().run(self._inner.call_tool(tool_name, input))


class Environment:
    """One environment of one server. It holds no connection and can be pickled."""

    def __init__(self, async_env: AsyncEnvironment, loop: Any = None) -> None:
        self._inner = async_env

    def __repr__(self) -> str:
        return repr(self._inner).replace("AsyncEnvironment", "Environment")

    @property
    def name(self) -> str:
        """The environment's name."""
        return self._inner.name

    def list_splits(self) -> list[SplitName]:
        """The names of the splits; each knows its `type`."""
        return portal().run(self._inner.list_splits())

    def list_tasks(self, split: str) -> list[Task]:
        """All tasks of a split."""
        return portal().run(self._inner.list_tasks(split))

    def num_tasks(self, split: str) -> int:
        """How many tasks a split has."""
        return portal().run(self._inner.num_tasks(split))

    def get_task(self, split: str, index: int) -> Task:
        """The task at an index of a split."""
        return portal().run(self._inner.get_task(split, index))

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Task]:
        """A slice of the tasks of a split, `stop` exclusive; negative bounds count from the end."""
        return portal().run(self._inner.get_task_range(split, start, stop))

    def tasks(self, split: str, *, page: int = PAGE) -> TaskSequence:
        """The tasks of a split as a sequence: shuffled, sharded, gone through page by page (`page` tasks at once)."""
        return TaskSequence.of(self._inner, split, page)

    @overload
    def list_tools(self, format: None = None) -> list[ToolSpec]: ...
    @overload
    def list_tools(self, format: Provider) -> list[dict[str, Any]]: ...
    def list_tools(self, format: Provider | None = None) -> list[ToolSpec] | list[dict[str, Any]]:
        """The tools that every task has, as `ToolSpec`s or in the format of a model provider."""
        return portal().run(self._inner.list_tools(format))  # type: ignore[return-value]

    def terminal_tool(self) -> TerminalToolSpec | None:
        """The tool that takes the agent's final message, if the environment has one."""
        return portal().run(self._inner.terminal_tool())

    def session(
        self,
        task: Task | Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        *,
        split: str | None = None,
        index: int | None = None,
        toolset: str | None = None,
    ) -> Session:
        """An episode of a task, given in full or by its place; open it with `with`.

        toolset: the name of a toolset that the server shall add; it is the server that knows which there are.
        """
        return Session(self._inner.session(task, secrets, split=split, index=index, toolset=toolset))

    def as_ended(
        self,
        play: Callable[[Session], _T],
        tasks: Iterable[Which],
        *,
        concurrency: int = 16,
        secrets: Mapping[str, str] | None = None,
    ) -> Iterator[Episode[_T]]:
        """Play many tasks, `concurrency` at once in threads, and yield what became of each in the order they end.

        `play` gets an open session. What it raises is the `error` of its episode and stops no other.
        """
        return gathering.as_ended_in_threads(self, play, tasks, concurrency, secrets)

    def gather(
        self,
        play: Callable[[Session], _T],
        tasks: Iterable[Which],
        *,
        concurrency: int = 16,
        secrets: Mapping[str, str] | None = None,
    ) -> list[Episode[_T]]:
        """The same, all of them, in the order of the tasks."""
        ended = self.as_ended(play, tasks, concurrency=concurrency, secrets=secrets)
        return sorted(ended, key=lambda episode: episode.number)


class EnvironmentsAPI:
    """The environments of a server. The options are those of `ORS`."""

    def __init__(self, base_url: str, api_key: str | None = None, **options: Any) -> None:
        self._inner = AsyncEnvironmentsAPI(base_url, api_key, **options)

    def get(self, name: str, base_url: str | None = None) -> Environment:
        """A handle on an environment. Nothing is asked of the server yet."""
        return Environment(self._inner.get(name, base_url))

    def list(self) -> list[str]:
        """The names of the environments; the first is the server's default."""
        return portal().run(self._inner.list())

    def close(self) -> None:
        """Close the connections. The handle can still be used: it opens others."""
        portal().run(self._inner.close())

    def __enter__(self) -> EnvironmentsAPI:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class ORS:
    """A client for a server of the Open Reward Standard; the arguments are those of `AsyncORS`.

    Connections are closed by `close`, by `with`, and when the program ends.
    """

    def __init__(
        self,
        base_url: str = "http://localhost:8080",
        api_key: str | None = None,
        *,
        timeout: float | None = 600.0,
        call_timeout: float | None = None,
        retry: Retry | None = None,
        ping_interval: float = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._environments = EnvironmentsAPI(
            base_url,
            api_key if api_key is not None else os.environ.get("ORS_API_KEY"),
            timeout=timeout,
            call_timeout=call_timeout,
            retry=retry,
            ping_interval=ping_interval,
            headers=headers,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._environments._inner._endpoint.base_url}>"

    @property
    def environments(self) -> EnvironmentsAPI:
        """The environments of the server: `get(name)` and `list()`."""
        return self._environments

    def environment(self, name: str) -> Environment:
        """A handle on an environment."""
        return self._environments.get(name)

    def close(self) -> None:
        """Close the connections. The client can still be used: it opens others."""
        self._environments.close()

    def __enter__(self) -> ORS:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
