"""The tasks of an environment class → the port `Tasks`. Each question is one work, run away from the event loop.

A split that `list_tasks` listed is kept: counting, picking and slicing then cost no second listing; `/tasks` lists
afresh. Of a source nothing is kept, and nothing is read but what was asked for. What an episode gets is a copy, so that
none can change the task of another.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any

from ors.adapters.class_tasks.listing import Changed, Listing, iterated, picked
from ors.adapters.explain import ErrorDetail, explain
from ors.core.failures import Failure, failure
from ors.core.ports import Document, RunWork, TaskQuery, TaskRef, Work
from ors.environment import Environment
from ors.errors import AuthoringError, TaskFileError
from ors.jsontext import JSONValueError, dump
from ors.tasks.either import either
from ors.tasks.keys import task_key
from ors.tasks.methods import TaskMethods, origin_of
from ors.tasks.values import jsonable, task_json
from ors.types import Split

__all__ = ["ClassTasks"]

_AT_ONCE = 128
_MOST_UNCOUNTED = 100_000
_BY_INDEX = "Use the index-based API (num_tasks + get_task) instead"
_LABELS = {"splits": "list_splits", "count": "num_tasks", "get": "get_task", "range": "get_task_range"}


class ClassTasks:
    """The tasks of one environment class; nothing is shared with its parent or its subclasses."""

    has_versions = True

    def __init__(self, cls: type[Environment], errors: ErrorDetail) -> None:
        self._cls = cls
        self._errors = errors
        self._splits: list[Split] | None = None
        self._tasks = TaskMethods(cls, Environment)
        own, source = self._tasks.own, self._tasks.source
        if "list_splits" not in own and source is None:
            raise AuthoringError(
                f"{cls.__name__} does not define list_splits; name its splits there, or declare where its tasks are: "
                "tasks = Jsonl({...}), or another source of ors.tasks"
            )
        self._limit = _limit_of(cls)
        # a class that says how many tasks it has and picks them, and nothing else, does not mean them to be listed
        self.lists = "list_tasks" in own or source is not None or self._limit is not None
        # a source may be asked by many threads at once, whatever the class says of itself
        self._serial = cls.name() if own or cls.thread_affinity != "class" else None
        self.has_ids = self._tasks.id is not None
        self._start = os.urandom(8)

    async def query(self, query: TaskQuery, run: RunWork) -> Document | Failure:
        """Answer a question with JSON."""
        if query.kind == "range":
            return await self._range(query, run)
        if query.kind not in (*_LABELS, "version"):
            return failure("not_supported", f"tasks have no {query.kind}")
        answer: Document | Failure = await self._ask(
            run, _LABELS.get(query.kind, query.kind), lambda: self._answer(query)
        )
        return answer

    async def resolve(self, ref: TaskRef, run: RunWork) -> Any:
        """The task at a place, as JSON data, or a Failure."""
        found = await self.find(ref, run)
        return found if isinstance(found, Failure) else found[0]

    async def find(self, ref: TaskRef, run: RunWork) -> tuple[Any, str] | Failure:
        """The task at a place with its key, or a Failure."""
        found: tuple[Any, str] | Failure = await self._ask(run, "get_task", lambda: self._find(ref))
        return found

    def key_of(self, task: Any) -> str:
        """The key of a task that is given in full: the author's id where it has one, else the hash."""
        try:
            return task_key(task, self._tasks.id)
        except Exception:  # an id of the author's that this task does not have
            return task_key(task)

    async def stream(self, split: str, run: RunWork) -> AsyncIterator[bytes | Failure]:
        """The JSON of every task, in pieces that take a moment each."""
        listing = await self._ask(run, "list_tasks", lambda: self._list(split))
        if isinstance(listing, Failure):
            yield listing
            return
        before, more = b"[", True
        while more:
            piece = await self._ask(run, "tasks", listing.next)
            if isinstance(piece, Failure):
                yield piece
                return
            body, more = piece
            yield before + body
            before = b","
        yield b'],"truncated":true' if listing.truncated else b"]"

    # On a lane, or the author's loop

    @either
    def _answer(self, query: TaskQuery) -> Generator[Any, Any, Any]:
        if query.kind == "splits":
            splits = yield self._load_splits()
            return splits if isinstance(splits, Failure) else Document(dump([split.model_dump() for split in splits]))
        if (wrong := (yield self._check_split(query.split))) is not None:
            return wrong
        if query.kind == "count":
            count = yield self._tasks.count(query.split)
            return Document(dump(count)) if count is not None else self._uncounted(query.split)
        if query.kind == "version":
            return Document(dump(self._version(query.split)))
        if query.index < 0:
            return failure("invalid_index", f"Invalid index {query.index}; indices start at 0")
        task = yield self._tasks.get(query.split, query.index)
        try:
            return Document(task_json(task))
        except Exception as exc:
            return self._bad_task(query.split, query.index, exc)

    @either
    def _find(self, ref: TaskRef) -> Generator[Any, Any, Any]:
        if (wrong := (yield self._check_split(ref.split))) is not None:
            return wrong
        if ref.index < 0:
            return failure("invalid_index", f"Invalid index {ref.index}; indices start at 0")
        task = yield self._tasks.get(ref.split, ref.index)
        try:
            data = jsonable(task)
            derived = self._tasks.keys_are_derived
            key = self.key_of(data) if derived else (yield self._tasks.key(ref.split, ref.index))
        except Exception as exc:
            return self._bad_task(ref.split, ref.index, exc)
        return data, str(key)

    @either
    def _check_split(self, name: str) -> Generator[Any, Any, Any]:
        splits = yield self._load_splits()
        if not isinstance(splits, Failure) and name not in (split.name for split in splits):
            splits = yield self._load_splits(afresh=True)
        if isinstance(splits, Failure):
            return splits
        names = [split.name for split in splits]
        if name in names:
            return None
        return failure("unknown_split", f"Invalid split '{name[:200]}'; the splits are {', '.join(names) or 'none'}")

    @either
    def _load_splits(self, afresh: bool = False) -> Generator[Any, Any, Any]:
        if self._splits is None or afresh:
            listed = yield self._tasks.splits()
            where = f"{self._cls.__name__}.list_splits"
            try:
                splits = [Split.of(item) for item in listed]
            except (TypeError, ValueError, KeyError) as exc:
                return failure("bad_splits", f"{where} returned no list of splits: {exc}", ran="yes")
            if len({split.name for split in splits}) != len(splits):
                return failure("bad_splits", f"{where} names a split twice", ran="yes")
            self._splits = splits
        return self._splits

    @either
    def _list(self, split: str) -> Generator[Any, Any, Any]:
        """What `/tasks` shows of a split."""
        if (wrong := (yield self._check_split(split))) is not None:
            return wrong
        tasks, limit = self._tasks, self._limit
        if "list_tasks" in tasks.own:
            try:
                listed = yield tasks.listed(split, afresh=True)
            except NotImplementedError:
                return self._unlisted("list_tasks is not supported for this environment")
            shown = size = len(listed)
            if limit is not None:
                shown = min(size, limit)
            if "num_tasks" in tasks.own:
                try:
                    size = max(size, (yield tasks.count(split)))
                except Exception:  # it need not know
                    pass
            return Listing(picked(listed, 0, self._encoder(split)), 0, shown, truncated=shown < size)
        if not self.lists:
            return self._unlisted("list_tasks is not supported for this environment")
        try:
            count = yield tasks.count(split)
        except NotImplementedError:
            count = None
        iterate = getattr(tasks.source, "iterate", None) if tasks.plain else None
        if count is None and iterate is not None:
            return Listing(
                iterated(iterate(split), self._encoder(split)), 0, limit, truncated=None if limit is not None else False
            )
        if count is None and limit is None:
            return self._unlisted(f"split '{split}' has no end that is known, and cannot be listed")
        stop: int | None = limit if count is None else count if limit is None else min(count, limit)
        return Listing(
            self._texts(split),
            0,
            stop,
            truncated=None if count is None else stop is not None and stop < count,
            version=(lambda: tasks.version(split)) if tasks.version(split) is not None else None,
        )

    @either
    def _open_range(self, query: TaskQuery) -> Generator[Any, Any, Any]:
        if (wrong := (yield self._check_split(query.split))) is not None:
            return wrong
        split, tasks = query.split, self._tasks
        start, stop = yield tasks.bounds(split, query.start, query.stop)
        if stop is not None and stop <= start:
            return Listing(lambda first, last: [], 0, 0)
        if "get_task_range" in tasks.own:
            found = yield tasks.range(split, start, stop)
            return Listing(picked(found, start, self._encoder(split)), start, start + len(found), size=_AT_ONCE)
        if "get_task" not in tasks.own and tasks.source is None:
            found = yield tasks.listed(split)
            return Listing(picked(found, 0, self._encoder(split)), start, max(start, stop), size=_AT_ONCE)
        try:
            count = yield tasks.count(split)
        except NotImplementedError:
            count = None
        if count is not None:
            stop = max(start, min(stop, count))
        elif stop - start > _MOST_UNCOUNTED:
            return failure("invalid_index", f"at most {_MOST_UNCOUNTED} tasks of a split without a count at once")
        return Listing(self._texts(split), start, stop, size=_AT_ONCE)

    async def _range(self, query: TaskQuery, run: RunWork) -> Document | Failure:
        listing = await self._ask(run, "get_task_range", lambda: self._open_range(query))
        if isinstance(listing, Failure):
            return listing
        parts, more = [], True
        while more:
            piece = await self._ask(run, "get_task_range", listing.next)
            if isinstance(piece, Failure):
                return piece
            body, more = piece
            if body:
                parts.append(body)
        return Document(b"[" + b",".join(parts) + b"]")

    # JSON

    def _texts(self, split: str) -> Callable[[int, int], Any]:
        """The texts of tasks that are picked by their places."""
        if self._tasks.plain and self._errors == "exception":
            return lambda start, stop: self._tasks.texts(split, start, stop)
        return lambda start, stop: self._told(split, start, stop)

    @either
    def _told(self, split: str, start: int, stop: int) -> Generator[Any, Any, Any]:
        """The same with our own words for what cannot be had: how much is told of errors is a setting."""
        encode = self._encoder(split)
        try:
            tasks = yield self._tasks.range(split, start, stop)
        except Exception as exc:
            whole = isinstance(exc, NotImplementedError) or (isinstance(exc, TaskFileError) and exc.row is None)
            if whole or not self._tasks.plain:
                raise
        else:
            return [encode(lambda task=task: task, index) for index, task in enumerate(tasks, start)]  # type: ignore[misc]
        found: list[bytes] = []
        for index in range(start, stop):
            try:
                task = yield self._tasks.get(split, index)
            except IndexError:
                break
            except Exception as exc:
                found.append(dump({"error": self._no_json(split, index, exc)}))
            else:
                found.append(encode(lambda task=task: task, index))  # type: ignore[misc]
        return found

    def _encoder(self, split: str) -> Callable[[Callable[[], Any], int], bytes]:
        """A task that cannot be JSON holds its place as `{"error": …}`, so that indices stay true."""

        def encode(get: Callable[[], Any], index: int) -> bytes:
            try:
                return task_json(get())
            except Exception as exc:
                return dump({"error": self._no_json(split, index, exc)})

        return encode

    def _no_json(self, split: str, index: int, exc: Exception) -> str:
        known = type(exc) is JSONValueError or isinstance(exc, TaskFileError)
        words = str(exc) if known else explain(exc, self._errors, "its environment failed")
        return f"task {index} of split '{split}' cannot be JSON: {words}"

    def _bad_task(self, split: str, index: int, exc: Exception) -> Failure:
        return failure("bad_task", self._no_json(split, index, exc), ran="yes")

    def _version(self, split: str) -> str | None:
        version = None if "list_tasks" in self._tasks.own else self._tasks.tag(split)
        if version is None:
            return None
        text = repr((version, self._limit)).encode("utf-8", "backslashreplace")
        # what functions make of a file's rows may be something else after the next start
        return hashlib.blake2b(text, key=self._start, digest_size=16).hexdigest()

    # What fails

    def _unlisted(self, words: str) -> Failure:
        return failure("not_supported", f"{words}. {_BY_INDEX}.", ran="yes")

    def _uncounted(self, split: str) -> Failure:
        words = f"nobody knows how many tasks split '{split}' has; tasks can be had by their index (get_task), and by "
        words += "ranges with a start and a stop, both 0 or more (get_task_range)"
        if getattr(self._tasks.source, "iterate", None) is not None:
            words = f"split '{split}' is a stream of tasks that nobody has counted; they can be listed (list_tasks)"
        return failure("not_supported", words, ran="yes")

    async def _ask(self, run: RunWork, label: str, work: Callable[[], Any]) -> Any:
        """Run a work; returns what it returns, or a failure."""

        async def settle(value: Awaitable[Any]) -> Any:
            try:
                return await value
            except BaseException as exc:
                return self._raised(label, exc)

        def guarded() -> Any:
            try:
                value = work()
                return settle(value) if inspect.isawaitable(value) else value
            except BaseException as exc:
                return self._raised(label, exc)

        return await run(Work(guarded, label=label, serial=self._serial))

    def _raised(self, label: str, exc: BaseException) -> Failure:
        method = origin_of(exc) or label
        if isinstance(exc, NotImplementedError):
            # what was written by authors of environments may be of any kind; sources know what else can be done
            said = str(exc) if origin_of(exc) is None else ""
            return failure("not_supported", said or f"{method} is not supported for this environment", ran="yes")
        if isinstance(exc, IndexError) and method.startswith("get_task"):
            return failure("invalid_index", f"Invalid index: {exc}" if str(exc) else "Invalid index", ran="yes")
        known = isinstance(exc, TaskFileError) and self._errors != "none"
        words = str(exc) if known else explain(exc, self._errors, "Internal Server Error")
        if isinstance(exc, TaskFileError) and exc.row is not None:
            return failure("bad_task", words, ran="yes")
        if isinstance(exc, (AuthoringError, Changed)):
            return failure("task_failed", str(exc), ran="yes")
        return failure("task_failed", words, ran="yes")


def _limit_of(cls: type[Environment]) -> int | None:
    limit: Any = cls.list_limit
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise AuthoringError(f"{cls.__name__}.list_limit is {limit!r}; it is a number of tasks, or None for all")
    return limit
