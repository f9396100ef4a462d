"""The task methods of an OpenEnv environment → `Tasks`, as the guide of the Task API has them.

Each question is asked of a fresh instance, made and closed for it, or of one that is kept where the class says
`REUSE_FOR_TASKS = True`. A method that is not there, or raises NotImplementedError, is `not_supported`; an IndexError
is `invalid_index`. What the guide leaves open: an unlisted split is `unknown_split`, an index below 0 or past the count
is `invalid_index`, and negative bounds of a range count from the end.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ors.adapters.openenv.wire import jsonable, said, task_of
from ors.core.failures import Failure, failure
from ors.core.ports import Document, RunWork, TaskQuery, TaskRef, Work
from ors.jsontext import JSONValueError, dump, load

__all__ = ["METHODS", "OpenEnvTasks"]

METHODS = ("list_splits", "list_tasks", "num_tasks", "get_task", "get_task_range")
_TYPES = ("train", "validation", "test")


class OpenEnvTasks:
    """The tasks of one offering."""

    def __init__(self, offering: Any) -> None:
        self._offering = offering
        self._reuse = bool(getattr(offering.factory.cls, "REUSE_FOR_TASKS", False))
        self._kept: list[Any] = []
        self._names: list[str] | None = None
        self._counted: dict[str, int] = {}
        cls = offering.factory.cls
        self.methods = frozenset(name for name in METHODS if callable(getattr(cls, name, None)))

    async def query(self, query: TaskQuery, run: RunWork) -> Document | Failure:
        if query.kind == "splits":
            splits = await self._ask(run, "list_splits", (), _splits_of)
            return splits if isinstance(splits, Failure) else Document(dump(splits))
        if (wrong := await self._check_split(query.split, run)) is not None:
            return wrong
        if query.kind == "count":
            count = await self._ask(run, "num_tasks", (query.split,), _count_of)
            return count if isinstance(count, Failure) else Document(dump(count))
        if query.kind == "get":
            document: Document | Failure = await self._get(TaskRef(query.split, query.index), run, _document)
            return document
        return await self._range(query, run)

    async def resolve(self, ref: TaskRef, run: RunWork) -> Any:
        if (wrong := await self._check_split(ref.split, run)) is not None:
            return wrong
        return await self._get(ref, run, _data)

    async def stream(self, split: str, run: RunWork) -> AsyncIterator[bytes | Failure]:
        if (wrong := await self._check_split(split, run)) is not None:
            yield wrong
            return
        listed = await self._ask(run, "list_tasks", (split,), lambda tasks: _list(tasks, "list_tasks"))
        yield listed

    async def close(self, run: RunWork) -> None:
        """Release the instances that are kept."""
        while self._kept:
            await run(
                Work(lambda: self._released(self._kept.pop(), None), label="close", serial=self._offering.spec.name)
            )

    async def _check_split(self, split: str, run: RunWork) -> Failure | None:
        """Refuse a split that is not listed, where splits can be listed."""
        if "list_splits" not in self.methods or (self._names is not None and split in self._names):
            return None
        splits = await self._ask(run, "list_splits", (), _splits_of)
        if isinstance(splits, Failure):
            return None
        self._names = [str(entry.get("name")) for entry in splits]
        if split in self._names:
            return None
        words = f"Invalid split '{split[:200]}'; the splits are {', '.join(self._names) or 'none'}"
        return failure("unknown_split", words)

    async def _get(self, ref: TaskRef, run: RunWork, make: Callable[[Any], Any]) -> Any:
        if ref.index < 0:
            return failure("invalid_index", "Invalid task index: indices start at 0")

        def checked(env: Any) -> Any:
            # not every get_task looks at its index; an instance that is there can say how many there are
            counts = getattr(env, "num_tasks", None)
            if (
                not callable(counts)
                or inspect.iscoroutinefunction(counts)
                or ref.index < self._counted.get(ref.split, 0)
            ):
                return None
            try:
                count = counts(ref.split)
            except Exception:  # it need not know
                return None
            if inspect.iscoroutine(count):
                count.close()
            if not isinstance(count, int):
                return None
            self._counted[ref.split] = count
            if ref.index < count:
                return None
            return failure("invalid_index", f"Invalid task index: split '{ref.split}' has {count} tasks")

        return await self._ask(run, "get_task", (ref.split, ref.index), make, checked)

    async def _range(self, query: TaskQuery, run: RunWork) -> Document | Failure:
        start, stop = query.start, query.stop
        if "get_task_range" in self.methods and ((start or 0) < 0 or (stop or 0) < 0):
            count = await self._ask(run, "num_tasks", (query.split,), _count_of)
            if isinstance(count, Failure):
                return count
            wanted = range(*slice(start, stop).indices(count))
            start, stop = wanted.start, max(wanted.start, wanted.stop)
        body = await self._ask(
            run, "get_task_range", (query.split, start, stop), lambda tasks: _list(tasks, "get_task_range")
        )
        return body if isinstance(body, Failure) else Document(body)

    # Author code

    async def _ask(
        self,
        run: RunWork,
        method: str,
        arguments: tuple[Any, ...],
        make: Callable[[Any], Any],
        check: Callable[[Any], Failure | None] | None = None,
    ) -> Any:
        """Call a method of an instance and return what `make` makes, also there, of what it returned; or a failure."""
        if method not in self.methods and self._offering.factory.cls is not None:
            return _unsupported(method)

        def work() -> Any:
            try:
                env = self._kept.pop() if self._kept else self._offering.factory.make()
            except BaseException as exc:
                return self._raised("the constructor", exc)
            try:
                asked = getattr(env, method, None)
                if not callable(asked):
                    return self._released(env, _unsupported(method))
                if check is not None and (wrong := check(env)) is not None:
                    return self._released(env, wrong)
                value = asked(*arguments)
                if inspect.isawaitable(value):
                    return _Awaited(env, value)
                return self._released(env, make(value))
            except BaseException as exc:
                return self._released(env, self._raised(method, exc))

        # one after another where the class keeps to one thread
        serial = self._offering.spec.name
        answer = await run(Work(work, label=method, serial=serial))
        if not isinstance(answer, _Awaited):
            return answer
        env, value = answer.env, answer.value

        async def settle() -> Any:
            try:
                return make(await value)
            except BaseException as exc:
                return self._raised(method, exc)

        answer = await run(Work(settle, label=method, is_async=True))
        # closed where it was made, not on the loop
        return await run(Work(lambda: self._released(env, answer), label="close", serial=serial))

    def _released(self, env: Any, answer: Any) -> Any:
        """Keep the instance or close it; the answer is what it was before."""
        if self._reuse and answer is not None:
            self._kept.append(env)
            return answer
        try:
            close = getattr(env, "close", None)
            closing = close() if callable(close) else None
        except BaseException as exc:
            self._raised("close", exc)
            return answer
        return _then(closing, answer) if inspect.isawaitable(closing) else answer

    def _raised(self, method: str, exc: BaseException) -> Failure:
        if isinstance(exc, NotImplementedError):
            return _unsupported(method)
        if isinstance(exc, IndexError) and method.startswith("get_task"):
            words = f"Invalid task index: {exc}" if str(exc) else "Invalid task index"
            return failure("invalid_index", words, ran="yes")
        return failure("task_failed", said(exc, self._offering.errors, "Internal Server Error"), ran="yes")


class _Awaited:
    """What an asynchronous method returned, and the instance that has to be released afterwards."""

    __slots__ = ("env", "value")

    def __init__(self, env: Any, value: Any) -> None:
        self.env = env
        self.value = value


async def _then(first: Awaitable[Any], answer: Any) -> Any:
    await first
    return answer


def _unsupported(method: str) -> Failure:
    return failure("not_supported", f"{method} is not supported for this environment")


def _splits_of(listed: Any) -> list[dict[str, Any]]:
    """Splits as the guide normalises them."""
    return [_split_of(split) for split in listed]


def _split_of(split: Any) -> dict[str, Any]:
    if hasattr(split, "model_dump"):
        split = split.model_dump()
    if isinstance(split, dict):
        data: dict[str, Any] = jsonable(split, "constants", objects=True)
        return data
    if isinstance(split, str):
        return {"name": split, "type": split if split in _TYPES else "validation"}
    return {"name": str(split), "type": "validation"}


def _count_of(count: Any) -> Any:
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        return failure("task_failed", f"num_tasks returned {count!r:.100}; a count is an integer", ran="yes")
    return int(count)


def _document(task: Any) -> Document | Failure:
    try:
        return Document(dump(task_of(task)))
    except (JSONValueError, ValueError) as exc:
        return failure("bad_task", f"the task cannot be JSON: {exc}", ran="yes")


def _data(task: Any) -> Any:
    document = _document(task)
    return load(document.body) if isinstance(document, Document) else document


def _list(tasks: Any, method: str) -> bytes | Failure:
    """The JSON of tasks. One that cannot be JSON holds its place as `{"error": …}`, so that indices stay true."""
    if isinstance(tasks, (str, bytes, dict)) or not hasattr(tasks, "__iter__"):
        return failure("task_failed", f"{method} returned {type(tasks).__name__}; return a list", ran="yes")
    parts = []
    for index, task in enumerate(tasks):
        try:
            parts.append(dump(task_of(task)))
        except (JSONValueError, ValueError) as exc:
            parts.append(dump({"error": f"task {index} cannot be JSON: {exc}"}))
    return b"[" + b",".join(parts) + b"]"
