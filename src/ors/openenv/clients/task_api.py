"""The Task API of an OpenEnv server (guide: The Task API), for clients: which tasks there are, never an episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import aiohttp

from ors.client.portal import portal
from ors.errors import RequestRefused
from ors.openenv.clients.addresses import is_local
from ors.openenv.clients.http import http_of_loop

__all__ = ["TaskAPI"]


class TaskAPI:
    """Splits and tasks. `env_name`: the environment, by default the server's first.

    Raises RequestRefused with the status and the words of the server (400 for an index outside, 501 for what the
    environment cannot say), and ConnectionError.
    """

    def __init__(self, base: str, env_name: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        self._base = base
        self._env_name = env_name
        self._headers = dict(headers or {})

    def of(self, env_name: str) -> TaskAPI:
        """The same of another environment of the server."""
        return TaskAPI(self._base, env_name, self._headers)

    def list_environments(self) -> list[str]:
        """The names of the server's environments."""
        return list(portal().run(self._ask("GET", "list_environments")))

    def list_splits(self) -> list[dict[str, Any]]:
        """The splits: `{"name", "type"}`."""
        return list(portal().run(self._of_env("GET", "splits")))

    def list_tasks(self, split: str) -> list[Any]:
        """The tasks of a split, or as many as the environment lists."""
        return list(portal().run(self._of_env("POST", "tasks", {"split": split}))["tasks"])

    def num_tasks(self, split: str) -> int:
        """How many tasks a split has."""
        return int(portal().run(self._of_env("POST", "num_tasks", {"split": split}))["num_tasks"])

    def get_task(self, split: str, index: int) -> Any:
        """The task at an index of a split."""
        return portal().run(self._of_env("POST", "task", {"split": split, "index": index}))["task"]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Any]:
        """A slice of the tasks of a split, `stop` exclusive."""
        bounds = {name: value for name, value in (("start", start), ("stop", stop)) if value is not None}
        return list(portal().run(self._of_env("POST", "task_range", {"split": split, **bounds}))["tasks"])

    async def _of_env(self, method: str, route: str, body: dict[str, Any] | None = None) -> Any:
        if self._env_name is None:
            names = await self._ask("GET", "list_environments")
            if not names:
                raise RequestRefused("this server lists no environments", kind="unknown_environment")
            self._env_name = str(names[0])
        return await self._ask(method, f"{quote(self._env_name, safe='')}/{route}", body)

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
