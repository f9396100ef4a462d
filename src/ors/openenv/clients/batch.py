"""Many sessions of one server at once: reset and stepped together, or each playing one episode after another.

All of them are on the clients' one event loop, whoever uses them: a thousand sessions need no thread of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

from ors.client.portal import portal
from ors.openenv.clients.env_client import EnvClient
from ors.openenv.clients.pending import run
from ors.openenv.clients.rollouts import Played, Rollouts
from ors.openenv.clients.sync_client import SyncEnvClient

__all__ = ["Batch", "BatchError"]

ClientT = TypeVar("ClientT", bound="EnvClient[Any, Any, Any]")


class BatchError(RuntimeError):
    """Some sessions of a batch failed. `results`: what came of each, an exception where it failed."""

    def __init__(self, what: str, results: list[Any]) -> None:
        failed = [number for number, each in enumerate(results) if isinstance(each, BaseException)]
        first = failed[0]
        words = f"{results[first]}" or type(results[first]).__name__
        super().__init__(
            f"{what} failed in {len(failed)} of {len(results)} sessions, first in session {first}: {words}"
        )
        self.what = what
        self.results = results

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.results)


class Batch(Generic[ClientT]):
    """`size` sessions with the server of a client, each with an environment of its own.

    As the client's own methods do, these return results outside of an event loop; inside of one, what they return is
    awaited. Where a session fails the others are waited for, and a BatchError has the results of all;
    `return_exceptions` puts exceptions among the results instead. `batch[3]` is the client of one session.
    """

    def __init__(self, client: ClientT | SyncEnvClient[Any, Any, Any], size: int) -> None:
        if size < 1:
            raise ValueError("a batch has at least one session")
        of: Any = client.async_client if isinstance(client, SyncEnvClient) else client
        self.clients: tuple[ClientT, ...] = tuple(of.new_session() for _ in range(size))

    def __len__(self) -> int:
        return len(self.clients)

    def __getitem__(self, number: int) -> ClientT:
        return self.clients[number]

    def __iter__(self) -> Iterator[ClientT]:
        return iter(self.clients)

    def __repr__(self) -> str:
        return f"<a batch of {len(self)} sessions of {self.clients[0]!r}>"

    # Together

    def connect(self) -> Any:
        """Open the sessions. The first request does it as well."""
        return self._all("connect()", [client._connected for client in self.clients], False)

    def reset(
        self, each: Sequence[Mapping[str, Any] | None] | None = None, *, return_exceptions: bool = False, **same: Any
    ) -> Any:
        """Start an episode in each session: a list of StepResults.

        each: the arguments of each session, beside those that are the same for all; None leaves it alone.
        """
        given = self._one_each(each if each is not None else [{}] * len(self), "reset")
        work = [
            None if kwargs is None else _later(client._reset, {**same, **kwargs})
            for client, kwargs in zip(self.clients, given, strict=True)
        ]
        return self._all("reset()", work, return_exceptions)

    def step(self, actions: Sequence[Any], *, timeout_s: float | None = None, return_exceptions: bool = False) -> Any:
        """Act in each session: a list of StepResults. An action that is None leaves its session alone."""
        kwargs = {} if timeout_s is None else {"timeout_s": timeout_s}
        work = [
            None if action is None else _later(client._step, action, kwargs)
            for client, action in zip(self.clients, self._one_each(actions, "step"), strict=True)
        ]
        return self._all("step()", work, return_exceptions)

    def state(self, *, return_exceptions: bool = False) -> Any:
        """The state of each session."""
        return self._all("state()", [client._state for client in self.clients], return_exceptions)

    def close(self) -> Any:
        """End the sessions; the client that they were made of stays as it is."""
        return self._all("close()", [client._close for client in self.clients], False)

    # One after another

    def gather(self, play: Callable[..., Any], starts: Iterable[Mapping[str, Any]], *, in_order: bool = True) -> Any:
        """Play an episode for each of `starts`, the arguments of its reset, as many at once as there are sessions.

        play: `play(env, first)` with a client and the result of the reset; `async`, or a plain function, which is run
        in a thread with a client whose methods return results. What it raises is the `error` of its episode and stops
        no other. The result is a list of `Played`, in the order of the starts, or as they ended. A session that the
        server has no place for is done without as long as there are others.
        """
        gathering = self._gathered(play, starts, in_order)
        if asyncio._get_running_loop() is not None:
            return gathering  # what `play` awaits belongs to the loop that is running
        return portal().run(gathering)

    def as_ended(self, play: Callable[..., Any], starts: Iterable[Mapping[str, Any]]) -> Rollouts:
        """The same, one by one as they end: `for played in …` or `async for played in …`."""
        return Rollouts(self.clients, play, starts)

    async def _gathered(
        self, play: Callable[..., Any], starts: Iterable[Mapping[str, Any]], in_order: bool
    ) -> list[Played]:
        ended = [played async for played in _closing(self.as_ended(play, starts))]
        return sorted(ended, key=lambda played: played.number) if in_order else ended

    # Inside

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        portal().run(self._done("close()", [client._close for client in self.clients], False))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _one_each(self, given: Sequence[Any], what: str) -> Sequence[Any]:
        if len(given) != len(self):
            raise ValueError(f"{what} was given {len(given)} for {len(self)} sessions; None leaves one alone")
        return given

    def _all(self, what: str, work: Sequence[Callable[[], Awaitable[Any]] | None], return_exceptions: bool) -> Any:
        return run(self._done(what, work, return_exceptions), f"a batch's {what}")

    @staticmethod
    async def _done(
        what: str, work: Sequence[Callable[[], Awaitable[Any]] | None], return_exceptions: bool
    ) -> list[Any]:
        asked = [_nothing() if each is None else each() for each in work]
        results = await asyncio.gather(*asked, return_exceptions=True)
        if not return_exceptions:
            for each in results:
                if isinstance(each, BaseException):
                    raise BatchError(what, results) from each
        return results


async def _nothing() -> None:
    return None


def _later(method: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> Callable[[], Awaitable[Any]]:
    return lambda: method(*args)


async def _closing(rollouts: Rollouts) -> AsyncIterator[Played]:
    iterating = aiter(rollouts)
    try:
        async for played in iterating:
            yield played
    finally:
        await iterating.aclose()
