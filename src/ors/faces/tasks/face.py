"""The routes of the Task API, and what differs between the protocols that have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ors.core.failures import Failure
from ors.core.ports import Document, Host, TaskQuery
from ors.faces.http import Reply, Request, Route, failure_reply
from ors.faces.tasks.answers import stream, tag_of, unchanged, whole
from ors.jsontext import dump
from ors.types import GetTask, GetTaskRange, ListTasks, NumTasks

__all__ = ["ORS_DIALECT", "Dialect", "TaskFace"]

_KINDS = ("unknown_environment", "unknown_split", "not_supported", "task_failed", "bad_splits", "worker_unavailable")


@dataclass(frozen=True, slots=True)
class Dialect:
    """names_env: `/task` and `/task_range` say which environment answered. aliases: other spellings of routes."""

    names_env: bool
    aliases: dict[str, tuple[str, ...]]


ORS_DIALECT = Dialect(names_env=True, aliases={"/task": ("/get_task",), "/task_range": ("/get_task_range",)})


class TaskFace:
    """The routes that discover tasks. They never start an episode."""

    def __init__(self, host: Host, dialect: Dialect) -> None:
        self._host = host
        self._dialect = dialect

    def routes(self) -> list[Route]:
        """The route table."""
        table = [
            self._route("GET", "/splits", self.splits, "List the splits", None, {"type": "array", "items": "Split"}),
            self._route("POST", "/tasks", self.tasks, "List every task of a split", ListTasks, _tasks_schema()),
            self._route("POST", "/num_tasks", self.num_tasks, "Count the tasks of a split", NumTasks, _count_schema()),
            self._route(
                "POST", "/task", self.task, "Get one task", GetTask, _task_schema(), "bad_task", "invalid_index"
            ),
            self._route(
                "POST",
                "/task_range",
                self.task_range,
                "Get a slice of a split",
                GetTaskRange,
                _tasks_schema(),
                "invalid_index",
            ),
        ]
        for route in list(table):
            for alias in self._dialect.aliases.get(route.path, ()):
                kinds = tuple(kind for kind in route.kinds if kind not in _KINDS)
                summary = f"{route.summary} (alias)"
                table.append(self._route(route.method, alias, route.handler, summary, route.body, route.answer, *kinds))
        return table

    def _route(
        self, method: Any, path: str, handler: Any, summary: str, body: type[BaseModel] | None, answer: Any, *kinds: str
    ) -> Route:
        kinds = (*_KINDS, *kinds)
        headers = ("If-None-Match",)
        about: dict[str, Any] = {"body": body, "answer": answer, "kinds": kinds, "tag": "Task API", "headers": headers}
        return Route(method, path, handler, summary, "env", **about)

    async def splits(self, request: Request) -> Reply:
        answer = await self._host.task(_env(request), TaskQuery("splits"))
        return await self._answer(request, answer, b"", b"")

    async def num_tasks(self, request: Request) -> Reply:
        body = await request.parse(NumTasks)
        answer = await self._host.task(_env(request), TaskQuery("count", body.split))
        return await self._answer(request, answer, b'{"num_tasks":', b"}")

    async def task(self, request: Request) -> Reply:
        body = await request.parse(GetTask)
        answer = await self._host.task(_env(request), TaskQuery("get", body.split, body.index))
        return await self._answer(request, answer, b'{"task":', self._tail(request))

    async def task_range(self, request: Request) -> Reply:
        body = await request.parse(GetTaskRange)
        query = TaskQuery("range", body.split, start=body.start, stop=body.stop)
        answer = await self._host.task(_env(request), query)
        return await self._answer(request, answer, b'{"tasks":', self._tail(request))

    async def tasks(self, request: Request) -> Reply | None:
        """Streamed: a split may be larger than what a server wants to hold."""
        body = await request.parse(ListTasks)
        env, after = _env(request), b',"env_name":%s}' % dump(_spelt(request))
        version = await self._host.task(env, TaskQuery("version", body.split))
        if isinstance(version, Failure):
            return failure_reply(version)
        tag = tag_of(b"tasks", version.body, after) if version.body != b"null" else None
        if tag is not None and (known := unchanged(request, tag)) is not None:
            return known
        return await stream(request, b'{"tasks":', self._host.tasks(env, body.split), after, tag)

    def _tail(self, request: Request) -> bytes:
        return b',"env_name":%s}' % dump(_spelt(request)) if self._dialect.names_env else b"}"

    @staticmethod
    async def _answer(request: Request, answer: Document | Failure, before: bytes, after: bytes) -> Reply:
        return (
            failure_reply(answer) if isinstance(answer, Failure) else await whole(request, before + answer.body + after)
        )


def _env(request: Request) -> str:
    assert request.env is not None
    return request.env


def _spelt(request: Request) -> str:
    return request.env_spelt or _env(request)


def _tasks_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "tasks": {"type": "array", "items": {"type": "object"}},
            "env_name": {"type": "string"},
            "truncated": {"type": "boolean"},
        },
        "required": ["tasks", "env_name"],
    }


def _task_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"task": {"type": "object"}, "env_name": {"type": "string"}},
        "required": ["task", "env_name"],
    }


def _count_schema() -> dict[str, Any]:
    return {"type": "object", "properties": {"num_tasks": {"type": "integer"}}, "required": ["num_tasks"]}
