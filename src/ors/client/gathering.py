"""Many episodes at once: a limit on how many, results as they end or in order, failures as data."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from ors.client.rewards import Rewards
from ors.client.tasks import Task

if TYPE_CHECKING:
    from ors.client.blocking import Environment, Session
    from ors.client.environment import AsyncEnvironment
    from ors.client.session import AsyncSession

__all__ = ["Episode", "Which", "each_as_it_ends"]

_T = TypeVar("_T")
_I = TypeVar("_I")

Which: TypeAlias = Task | Mapping[str, Any] | tuple[str, int]
"""A task to play: a `Task`, a task in full, or the pair of split and index."""


@dataclass
class Episode(Generic[_T]):
    """What became of one task.

    number: its place among the tasks that were given. task: the task as it was given. value: what `play` returned.
    error: what it raised instead. rewards, finished, sid: as far as the episode came. seconds: how long it took.
    """

    number: int
    task: Which
    value: _T | None = None
    error: Exception | None = None
    rewards: Rewards = field(default_factory=Rewards)
    finished: bool = False
    sid: str | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it was played without an error."""
        return self.error is None

    def unwrap(self) -> _T:
        """What `play` returned. Raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


@dataclass(frozen=True)
class _Ended(Generic[_T]):
    value: _T


def _place(which: Which) -> dict[str, Any]:
    if isinstance(which, tuple):
        split, index = which
        return {"split": split, "index": index}
    return {"task": which}


def _checked(concurrency: int) -> int:
    if concurrency < 1:
        raise ValueError("concurrency is at least 1")
    return concurrency


async def _play(
    env: AsyncEnvironment,
    play: Callable[[AsyncSession], Awaitable[_T]],
    episode: Episode[_T],
    secrets: Mapping[str, str] | None,
) -> None:
    began = time.monotonic()
    session = None
    try:
        session = env.session(**_place(episode.task), secrets=secrets)
        async with session:
            episode.value = await play(session)
    except Exception as exc:
        episode.error = exc
    _note(episode, session, began)


def _note(episode: Episode[Any], session: Any, began: float) -> None:
    episode.seconds = time.monotonic() - began
    if session is not None:
        episode.rewards, episode.finished, episode.sid = session.rewards, session.finished, session.sid


async def as_ended(
    env: AsyncEnvironment,
    play: Callable[[AsyncSession], Awaitable[_T]],
    tasks: Iterable[Which],
    concurrency: int,
    secrets: Mapping[str, str] | None,
) -> AsyncIterator[Episode[_T]]:
    """Play the tasks and yield what became of each, in the order in which they end."""

    async def one(numbered: tuple[int, Which]) -> Episode[_T]:
        episode: Episode[_T] = Episode(*numbered)
        await _play(env, play, episode, secrets)
        return episode

    async with contextlib.aclosing(each_as_it_ends(enumerate(tasks), one, _checked(concurrency))) as ended:
        async for episode in ended:
            yield episode


async def each_as_it_ends(
    items: Iterable[_I], work: Callable[[_I], Awaitable[_T]], at_once: int
) -> AsyncGenerator[_T, None]:
    """What `work` makes of each item, so many at once, as it ends. What it raises ends all, as does leaving early."""
    items = iter(items)
    ended: asyncio.Queue[_Ended[_T] | BaseException | None] = asyncio.Queue()

    async def run() -> None:
        try:
            # all share the iterator: there may be more items than fit in memory, or no end of them
            for item in items:
                ended.put_nowait(_Ended(await work(item)))
        except BaseException as exc:
            ended.put_nowait(exc)
            raise
        ended.put_nowait(None)

    workers = [asyncio.create_task(run()) for _ in range(at_once)]
    try:
        left = len(workers)
        while left:
            item = await ended.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                left -= 1
            else:
                yield item.value
    finally:
        # also when nobody wants the rest: what is under way is ended before this returns
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def as_ended_in_threads(
    env: Environment,
    play: Callable[[Session], _T],
    tasks: Iterable[Which],
    concurrency: int,
    secrets: Mapping[str, str] | None,
) -> Iterator[Episode[_T]]:
    """The same for synchronous code, which is run in threads."""
    numbered = iter(enumerate(tasks))
    lock = threading.Lock()
    stopped = threading.Event()
    ended: queue.SimpleQueue[Episode[_T] | None | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            while not stopped.is_set():
                with lock:
                    number, task = next(numbered, (-1, None))
                if task is None:
                    break
                episode: Episode[_T] = Episode(number, task)
                _play_here(env, play, episode, secrets)
                ended.put(episode)
        except BaseException as exc:
            ended.put(exc)
        ended.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_checked(concurrency))]
    for thread in threads:
        thread.start()
    try:
        left = len(threads)
        while left:
            item = ended.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                left -= 1
            else:
                yield item
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def _play_here(
    env: Environment, play: Callable[[Session], _T], episode: Episode[_T], secrets: Mapping[str, str] | None
) -> None:
    began = time.monotonic()
    session = None
    try:
        session = env.session(**_place(episode.task), secrets=secrets)
        with session:
            episode.value = play(session)
    except Exception as exc:
        episode.error = exc
    _note(episode, session, began)
