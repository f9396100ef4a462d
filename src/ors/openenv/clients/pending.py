"""An answer that is on its way: what a client gives to code inside a running event loop.

The request has been sent when this is made, in the order of the calls, whether or not anybody awaits it. `await` it;
or use it as what it will be: touching it waits for it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from ors.client.portal import portal

__all__ = ["Pending", "run"]

logger = logging.getLogger("ors.openenv.client")
T = TypeVar("T")


class Pending(Generic[T]):
    """A result that is on its way."""

    def __init__(self, work: Coroutine[Any, Any, T], what: str) -> None:
        self._what = what
        self._read = False
        self._future: concurrent.futures.Future[T] = portal().submit(work)
        self._future.add_done_callback(self._note)

    def __await__(self) -> Generator[Any, Any, T]:
        self._read = True
        return asyncio.wrap_future(self._future).__await__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # whoever looks for special methods does not mean the result
        return getattr(self.result(), name)

    def __repr__(self) -> str:
        if not self._future.done():
            return f"<the answer to {self._what}, on its way>"
        return f"<the answer to {self._what}>"

    def result(self) -> T:
        """Wait for it, also inside a running loop."""
        self._read = True
        return self._future.result()

    def _note(self, future: concurrent.futures.Future[T]) -> None:
        if not self._read and not future.cancelled() and (exc := future.exception()) is not None:
            logger.warning("%s failed, and its result was not looked at: %s", self._what, exc)


def run(work: Coroutine[Any, Any, T], what: str) -> Any:
    """Outside of an event loop: the result. Inside of one: a `Pending`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return portal().run(work)
    return Pending(work, what)
