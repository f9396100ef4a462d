"""An answer that is on its way: what a client gives to code inside a running event loop.

The request has been handed over when this is made, in the order of the calls, whether or not anybody awaits it. `await`
it; or use it as what it will be: touching it waits for it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import operator
import os
from collections.abc import Coroutine, Generator, Iterator
from typing import Any, Generic, TypeVar

from ors.client.portal import current_loop, portal

__all__ = ["Pending", "run"]

logger = logging.getLogger("ors.openenv.client")
T = TypeVar("T")


class Pending(Generic[T]):
    """A result that is on its way. A failure that nobody looks at is logged."""

    def __init__(self, work: Coroutine[Any, Any, T], what: str) -> None:
        self._what = what
        self._read = False
        self._pid = os.getpid()
        self._future: concurrent.futures.Future[T] = portal().submit(work)

    def __await__(self) -> Generator[Any, Any, T]:
        self._check_process()
        self._read = True
        return asyncio.wrap_future(self._future).__await__()

    def result(self) -> T:
        """Wait for it, also inside a running loop. Raises RuntimeError on the loop that it is waited for on."""
        if not self._future.done():
            self._check_process()
            if asyncio._get_running_loop() is not None and asyncio._get_running_loop() is current_loop():
                raise RuntimeError(f"{self._what} has to be awaited here: this code runs on the clients' own loop")
        self._read = True
        try:
            return self._future.result()
        except (KeyboardInterrupt, SystemExit):
            self._future.cancel()
            raise

    def done(self) -> bool:
        """Whether it is there."""
        return self._future.done()

    def _check_process(self) -> None:
        if self._pid != os.getpid() and not self._future.done():
            raise RuntimeError(f"{self._what} was asked in the parent process, which alone hears the answer")

    def __repr__(self) -> str:
        return f"<the answer to {self._what}{'' if self._future.done() else ', on its way'}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self._what} is on its way; await it, and pickle or copy its result")

    def __del__(self) -> None:
        future = self.__dict__.get("_future")
        if future is None or self._read or self._pid != os.getpid():
            return
        what = self._what

        def note(future: concurrent.futures.Future[Any]) -> None:
            if not future.cancelled() and (exc := future.exception()) is not None:
                logger.warning("%s failed, and its result was not looked at: %s", what, exc)

        future.add_done_callback(note)

    # What it will be

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # whoever looks for special methods does not mean the result
        return getattr(self.result(), name)

    def __str__(self) -> str:
        return str(self.result())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self.result()))

    def __bool__(self) -> bool:
        return bool(self.result())

    def __index__(self) -> int:
        return operator.index(self.result())  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.result())  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.result())  # type: ignore[call-overload, no-any-return]

    def __getitem__(self, key: Any) -> Any:
        return self.result()[key]  # type: ignore[index]

    def __contains__(self, item: Any) -> bool:
        return item in self.result()  # type: ignore[operator]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Pending):
            return self is other
        return bool(self.result() == other)

    __hash__ = object.__hash__


def run(work: Coroutine[Any, Any, T], what: str) -> Any:
    """Outside of an event loop: the result. Inside of one: a `Pending`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return portal().run(work)
    return Pending(work, what)
