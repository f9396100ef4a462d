"""Episodes one after another in each of several sessions, and what became of them as they end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import logging
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ors.client.gathering import each_as_it_ends
from ors.client.portal import portal
from ors.openenv.clients.env_client import EnvClient
from ors.openenv.clients.frames import ServerError
from ors.openenv.clients.step_result import StepResult

__all__ = ["Played", "Rollouts"]

logger = logging.getLogger("ors.openenv.client")


@dataclass
class Played:
    """What became of one episode.

    number: its place among the starts. start: the arguments of its reset. first: what the reset came to. value: what
    `play` returned. error: what it, or the reset, raised instead. seconds: how long it took.
    """

    number: int
    start: Mapping[str, Any]
    first: StepResult[Any] | None = None
    value: Any = None
    error: Exception | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it was played without an error."""
        return self.error is None

    def unwrap(self) -> Any:
        """What `play` returned. Raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.value


class Rollouts:
    """Plays when it is iterated over, once. Who stops iterating stops what is still being played."""

    def __init__(
        self,
        clients: Sequence[EnvClient[Any, Any, Any]],
        play: Callable[..., Any],
        starts: Iterable[Mapping[str, Any]],
    ) -> None:
        self._clients = clients
        self._play = play
        self._starts = enumerate(starts)
        called = play if inspect.isfunction(play) or inspect.ismethod(play) else type(play).__call__
        self._awaits = inspect.iscoroutinefunction(play) or inspect.iscoroutinefunction(called)

    def __iter__(self) -> Generator[Played, None, None]:
        """Each as it ends. What is `async` in `play` runs on the clients' own loop then."""
        iterating = aiter(self)
        try:
            while (played := portal().run(_next(iterating))) is not None:
                yield played
        finally:
            portal().run(iterating.aclose())

    async def __aiter__(self) -> AsyncGenerator[Played, None]:
        """Each as it ends. What is `async` in `play` runs on the loop that this runs on."""
        free: asyncio.LifoQueue[EnvClient[Any, Any, Any]] = asyncio.LifoQueue()
        for client in reversed(self._clients):
            free.put_nowait(client)
        places = [len(self._clients)]
        threads = None if self._awaits else concurrent.futures.ThreadPoolExecutor(len(self._clients), "ors-rollout")

        async def one(numbered: tuple[int, Mapping[str, Any]]) -> Played:
            played = Played(*numbered)
            await self._one(played, free, places, threads)
            return played

        try:
            async with contextlib.aclosing(each_as_it_ends(self._starts, one, len(self._clients))) as ended:
                async for played in ended:
                    yield played
        finally:
            if threads is not None:
                # what runs in a thread ends when its next request is refused, or it is done
                threads.shutdown(wait=False, cancel_futures=True)

    async def _one(
        self,
        played: Played,
        free: asyncio.LifoQueue[EnvClient[Any, Any, Any]],
        places: list[int],
        threads: concurrent.futures.Executor | None,
    ) -> None:
        began = time.monotonic()
        while True:
            client = await free.get()
            try:
                played.first = await client.reset(**played.start)
                played.value = await self._played(client, played.first, threads)
            except Exception as exc:
                full = isinstance(exc, ServerError) and exc.code == "CAPACITY_REACHED" and played.first is None
                if full and places[0] > 1:
                    places[0] -= 1
                    logger.info("the server has no place for one of the sessions: %s", exc)
                    continue  # without it, in one of the others
                played.error = exc
            free.put_nowait(client)
            played.seconds = time.monotonic() - began
            return

    async def _played(
        self, client: EnvClient[Any, Any, Any], first: Any, threads: concurrent.futures.Executor | None
    ) -> Any:
        if threads is None:
            return await self._play(client, first)
        loop = asyncio.get_running_loop()
        value = await loop.run_in_executor(threads, self._play, client.sync(), first)
        if inspect.iscoroutine(value):
            value.close()
            raise TypeError(f"{self._play!r} is a plain function that returned a coroutine; make it an `async` one")
        return value


async def _next(iterating: AsyncGenerator[Played, None]) -> Played | None:
    return await anext(iterating, None)
