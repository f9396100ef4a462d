"""The routes of the Task API, and what differs between the protocols that have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from ors.core.failures import Failure, failure
from ors.core.ports import Document, Host, OfferingSpec, TaskQuery
from ors.faces.bodies import read_body, telling
from ors.faces.http import Reply, Request, Route, failure_reply
from ors.faces.tasks.answers import stream, tag_of, unchanged, whole
from ors.jsontext import dump
from ors.types import GetTask, GetTaskRange, ListTasks, NumTasks

__all__ = ["OPENENV_DIALECT", "ORS_DIALECT", "Dialect", "TaskFace"]

M = TypeVar("M", bound=BaseModel)

_KINDS = ("unknown_environment", "unknown_split", "not_supported", "task_failed", "bad_splits", "worker_unavailable")


@dataclass(frozen=True, slots=True)
class Dialect:
    """names_env: `/task` and `/task_range` say which environment answered. lists_errors: what is wrong with a body is
    told as a list, keys that it does not take are wrong, and numbers may be texts. spelt: answers spell the environment
    as the path did, else as it was named.
    """

    names_env: bool
    lists_errors: bool
    spelt: bool


ORS_DIALECT = Dialect(names_env=True, lists_errors=False, spelt=True)
OPENENV_DIALECT = Dialect(names_env=False, lists_errors=True, spelt=False)
_DIALECTS = {"tools": ORS_DIALECT, "steps": OPENENV_DIALECT}
_ALIASES = {"/task": ("/get_task",), "/task_range": ("/get_task_range",)}


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    split: str


class _Get(_Body):
    index: int


class _Range(_Body):
    start: int | None = None
    stop: int | None = None


_LENIENT: dict[type[BaseModel], type[BaseModel]] = {
    ListTasks: _Body,
    NumTasks: _Body,
    GetTask: _Get,
    GetTaskRange: _Range,
}


class TaskFace:
    """The routes that discover tasks, in the dialect of each environment's authors. They never start an episode.

    seeds: environments that have no tasks of their own have seeds; else they support none of this.
    """

    def __init__(self, host: Host, *, seeds: bool = True) -> None:
        self._host = host
        self._seeds = seeds

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
            for alias in _ALIASES.get(route.path, ()):
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
        return Route(method, path, telling(handler), summary, "env", **about)

    async def splits(self, request: Request) -> Reply:
        answer = self._unsupported(request, "list_splits") or await self._host.task(_env(request), TaskQuery("splits"))
        return await self._answer(request, answer, b"", b"")

    async def num_tasks(self, request: Request) -> Reply:
        body = await self._read(request, NumTasks)
        query = TaskQuery("count", body.split)
        answer = self._unsupported(request, "num_tasks") or await self._host.task(_env(request), query)
        return await self._answer(request, answer, b'{"num_tasks":', b"}")

    async def task(self, request: Request) -> Reply:
        body = await self._read(request, GetTask)
        query = TaskQuery("get", body.split, body.index)
        answer = self._unsupported(request, "get_task") or await self._host.task(_env(request), query)
        return await self._answer(request, answer, b'{"task":', self._tail(request))

    async def task_range(self, request: Request) -> Reply:
        body = await self._read(request, GetTaskRange)
        query = TaskQuery("range", body.split, start=body.start, stop=body.stop)
        answer = self._unsupported(request, "get_task_range") or await self._host.task(_env(request), query)
        return await self._answer(request, answer, b'{"tasks":', self._tail(request))

    async def tasks(self, request: Request) -> Reply | None:
        """Streamed: a split may be larger than what a server wants to hold."""
        body = await self._read(request, ListTasks)
        if (unsupported := self._unsupported(request, "list_tasks")) is not None:
            return failure_reply(unsupported)
        env, after = _env(request), b',"env_name":%s}' % dump(self._name(request))
        version = await self._host.task(env, TaskQuery("version", body.split))
        if isinstance(version, Failure):
            return failure_reply(version)
        tag = tag_of(b"tasks", version.body, after) if version.body != b"null" else None
        if tag is not None and (known := unchanged(request, tag)) is not None:
            return known
        return await stream(request, b'{"tasks":', self._host.tasks(env, body.split), after, tag)

    def _spec(self, request: Request) -> OfferingSpec:
        return self._host.offerings()[_env(request)]

    def _dialect(self, request: Request) -> Dialect:
        return _DIALECTS[self._spec(request).kind]

    async def _read(self, request: Request, model: type[M]) -> M:
        if not self._dialect(request).lists_errors:
            return await request.parse(model)
        body = await read_body(request, _LENIENT[model])
        return model.model_construct(**body.model_dump())

    def _unsupported(self, request: Request, method: str) -> Failure | None:
        if self._seeds or self._spec(request).own_tasks:
            return None
        return failure("not_supported", f"{method} is not supported for this environment")

    def _name(self, request: Request) -> str:
        spec = self._spec(request)
        return _spelt(request) if _DIALECTS[spec.kind].spelt else spec.name

    def _tail(self, request: Request) -> bytes:
        return b',"env_name":%s}' % dump(self._name(request)) if self._dialect(request).names_env else b"}"

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
