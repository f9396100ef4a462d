"""The Task API of an OpenEnv server (guide: The Task API), for clients: which tasks there are, never an episode."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any
from urllib.parse import quote

import aiohttp

from ors.client.endpoint import Endpoint
from ors.client.environment import AsyncEnvironment
from ors.client.paging import count
from ors.client.portal import portal
from ors.client.sequence import PAGE
from ors.client.task_sequence import TaskSequence
from ors.client.tasks import Task
from ors.errors import ProtocolError, RequestRefused
from ors.openenv.clients.addresses import is_local
from ors.openenv.clients.http import http_of_loop
from ors.openenv.clients.pending import run

__all__ = ["TaskAPI"]


class TaskAPI:
    """Splits and tasks. `env_name`: the environment, by default the server's first.

    As the client's own methods do, these return results outside of an event loop; inside of one, what they return is
    awaited. `waiting`: they return results there too. Raises RequestRefused with the status and the words of the server
    (400 for an index outside, 501 for what the environment cannot say), and ConnectionError.
    """

    def __init__(
        self,
        base: str,
        env_name: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        waiting: bool = False,
    ) -> None:
        self._base = base
        self._env_name = env_name
        self._headers = dict(headers or {})
        self._waiting = waiting

    def of(self, env_name: str) -> TaskAPI:
        """The same of another environment of the server."""
        return TaskAPI(self._base, env_name, self._headers, waiting=self._waiting)

    def list_environments(self) -> Any:
        """The names of the server's environments: a list of texts."""
        return self._run(self._ask("GET", "list_environments"), "list_environments()")

    def list_splits(self) -> Any:
        """The splits: a list of `{"name", "type"}`."""
        return self._run(self._of_env("GET", "splits"), "list_splits()")

    def list_tasks(self, split: str) -> Any:
        """The tasks of a split, or as many as the environment lists: a list."""
        return self._run(self._of_env("POST", "tasks", {"split": split}, "tasks"), "list_tasks()")

    def num_tasks(self, split: str) -> Any:
        """How many tasks a split has: an integer."""
        return self._run(self._of_env("POST", "num_tasks", {"split": split}, "num_tasks"), "num_tasks()")

    def get_task(self, split: str, index: int) -> Any:
        """The task at an index of a split."""
        return self._run(self._of_env("POST", "task", {"split": split, "index": index}, "task"), "get_task()")

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> Any:
        """A slice of the tasks of a split, `stop` exclusive: a list."""
        bounds = {name: value for name, value in (("start", start), ("stop", stop)) if value is not None}
        return self._run(self._of_env("POST", "task_range", {"split": split, **bounds}, "tasks"), "get_task_range()")

    def tasks(self, split: str, *, page: int = PAGE) -> Any:
        """The tasks of a split as a lazy sequence (`ors.client.TaskSequence`), of which `page` are fetched at once.

        It is shuffled, shared out, resumed and filtered without listing anything; its items know their place, and
        `task.task_spec` is the task, which has to be an object.
        """
        return self._run(self._sequence(split, page), "tasks()")

    def _run(self, work: Coroutine[Any, Any, Any], what: str) -> Any:
        return portal().run(work) if self._waiting else run(work, what)

    async def _sequence(self, split: str, page: int) -> TaskSequence:
        env = _Tasks(await self._name(), Endpoint(self._base.rstrip("/"), headers=self._headers))
        return TaskSequence(env, split, await count(env, split), page=page)

    async def _name(self) -> str:
        if self._env_name is None:
            names = await self._ask("GET", "list_environments")
            if not names:
                raise RequestRefused("this server lists no environments", kind="unknown_environment")
            self._env_name = str(names[0])
        return self._env_name

    async def _of_env(
        self, method: str, route: str, body: dict[str, Any] | None = None, name: str | None = None
    ) -> Any:
        said = await self._ask(method, f"{quote(await self._name(), safe='')}/{route}", body)
        try:
            return said if name is None else said[name]
        except (KeyError, TypeError):
            raise ProtocolError(f"{method} {route} answered without {name!r}", kind="bad_answer") from None

    async def _ask(self, method: str, route: str, body: dict[str, Any] | None = None) -> Any:
        url = self._base + route
        http = http_of_loop(proxies=not is_local(self._base))
        try:
            async with http.request(method, url, json=body, headers=self._headers) as answer:
                if answer.status != 200:
                    words = (await answer.text())[:2000]
                    raise RequestRefused(f"{method} {url} answered {answer.status}: {words}", status=answer.status)
                return await answer.json(content_type=None)
        except (aiohttp.ClientError, OSError) as exc:
            raise ConnectionError(f"Failed to connect to {url}: {exc}") from exc


class _Tasks(AsyncEnvironment):
    """The tasks of an environment that may know them one by one only."""

    async def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Task]:
        try:
            return await super().get_task_range(split, start, stop)
        except RequestRefused as exc:
            if exc.status != 501 or start is None or stop is None:
                raise
        return list(await asyncio.gather(*(self.get_task(split, index) for index in range(start, stop))))
