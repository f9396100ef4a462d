"""The remote host: its sessions live in one process that it spawns, and every argument and result crosses in frames.

Requests are told apart by a number, so any number of them are under way at once. When the process dies, every request
under way and every session there fails with `worker_lost`, and no new session can be opened: nothing is started again.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import multiprocessing
import multiprocessing.util
import os
import pickle
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from typing import Any

from ors.core.failures import Failure, failure
from ors.core.ports import Document, Offering, OfferingSpec, Op, Opened, Outcome, Principal, Start, TaskQuery
from ors.errors import AuthoringError, ORSError
from ors.hosts import messages as wire
from ors.hosts import owner
from ors.hosts.frames import FrameError
from ors.hosts.link import Link
from ors.hosts.local import HostOptions
from ors.hosts.owner_logs import OwnerTraceback, log_here, wanted_level
from ors.jsontext import load

__all__ = ["RemoteHost"]

logger = logging.getLogger("ors.server")

_CREDIT = 2
"""Pieces of a stream that may be under way."""
_LOOK_S = 0.02
"""How often a process that ought to be over is looked at."""


class _Asked(asyncio.Future[Any]):
    """A request under way. Cancelling it tells the owner that nobody waits any more; what was asked for goes on."""

    __slots__ = ("host", "id")

    def __init__(self, host: RemoteHost, id: int) -> None:
        super().__init__(loop=host.loop)
        self.host = host
        self.id = id

    def cancel(self, msg: Any = None) -> bool:
        if not super().cancel(msg):
            return False
        self.host.detach(self.id)
        return True


class RemoteHost:
    """A host whose sessions live in another process. Make it with `spawn`, on the event loop that will use it."""

    def __init__(self, process: BaseProcess, options: HostOptions) -> None:
        self.loop = asyncio.get_running_loop()
        self.options = options
        self._process = process
        self._specs: dict[str, OfferingSpec] = {}
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._streams: dict[int, asyncio.Queue[Any]] = {}
        self._ready: asyncio.Future[None] = self.loop.create_future()
        self._exited: asyncio.Future[None] = self.loop.create_future()
        self._gone: Failure | None = None
        self._closing = False
        self._level = wanted_level()
        self._link = Link(wire.TO_FRONT, self._received, self._lost)
        self._at_exit: Any = None
        self._watched = -1

    @classmethod
    async def spawn(
        cls, make_offerings: Callable[[], Sequence[Offering]], options: HostOptions | None = None
    ) -> RemoteHost:
        """Start the process and wait until it is ready. `make_offerings` and what it holds are pickled by name.

        Raises AuthoringError with the process's own words when the environments cannot be made there, ORSError when it
        ends without a word.
        """
        options = options or HostOptions()
        try:
            payload = pickle.dumps(make_offerings)
        except (pickle.PicklingError, AttributeError, TypeError) as exc:
            raise AuthoringError(
                f"a spawned process imports environments by name, and that is not possible here: {exc}; define the "
                "classes at the top level of a module"
            ) from exc
        ours, theirs = socket.socketpair()
        process = multiprocessing.get_context("spawn").Process(
            target=owner.run, args=(theirs, payload, options, os.getpid(), wanted_level()), name="ors-owner"
        )
        try:
            with theirs:
                process.start()
        except BaseException:
            ours.close()
            raise
        host = cls(process, options)
        try:
            await host._connect(ours)
        except BaseException:
            # what the exit of the process sets off does the rest, also when this is cancelled once more
            host._closing = True
            host._kill()
            host._link.abort()
            await asyncio.shield(host._exited)
            raise
        return host

    def _end_now(self, sock: socket.socket) -> None:
        self._closing = True
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        deadline = time.monotonic() + owner.END_S
        try:
            while self._process.is_alive():
                if time.monotonic() > deadline:
                    self._process.kill()
                    self._process.join()
                time.sleep(_LOOK_S)
        except ValueError:  # the thread of its host was faster
            pass

    async def _connect(self, sock: socket.socket) -> None:
        # at the interpreter's exit nobody may be left to close this host: the process is ended then, come what may
        self._at_exit = multiprocessing.util.Finalize(None, self._end_now, (sock,), exitpriority=10)
        try:
            self._watched = os.pidfd_open(self._process.pid or 0)
        except (AttributeError, OSError):  # not on this system; the pipe ends with the process and its children
            self._watched = os.dup(self._process.sentinel)
        self.loop.add_reader(self._watched, self._on_exit)
        await self.loop.create_unix_connection(lambda: self._link, sock=sock)
        await self._ready

    # The port

    def offerings(self) -> Mapping[str, OfferingSpec]:
        return self._specs

    async def open(
        self, sid: str, env: str | None, start: Start, principal: Principal, key: str | None
    ) -> Opened | Failure:
        if self._gone is not None:
            return self._unavailable()
        if (level := wanted_level()) != self._level:
            self._level = level
            self._link.send(wire.Level(0, level))
        outcome: Opened | Failure = await self._ask(
            lambda id: wire.Open(id, sid, env, wire.WireStart.of(start), principal, key)
        )
        return outcome

    def perform(self, sid: str, principal: Principal, op: Op) -> asyncio.Future[Outcome]:
        return self._ask(lambda id: wire.Perform(id, sid, principal, wire.WireOp.of(op)))

    async def cancel(self, sid: str, principal: Principal, call_id: str) -> Document | Failure:
        outcome: Document | Failure = await self._ask(lambda id: wire.Cancel(id, sid, principal, call_id))
        return outcome

    async def end(self, sid: str, principal: Principal, why: str = "deleted") -> Document | Failure:
        if self._gone is not None:
            return Document(b"{}")
        outcome: Document | Failure = await self._ask(lambda id: wire.End(id, sid, principal, why))
        return outcome

    def touch(self, sid: str, principal: Principal) -> asyncio.Future[Failure | None]:
        return self._ask(lambda id: wire.Touch(id, sid, principal))

    async def task(self, env: str, query: TaskQuery) -> Document | Failure:
        if self._gone is not None:
            return self._unavailable()
        outcome: Document | Failure = await self._ask(lambda id: wire.Ask.of(id, env, query))
        return outcome

    async def tasks(self, env: str, split: str) -> AsyncIterator[bytes | Failure]:
        if self._gone is not None:
            yield self._unavailable()
            return
        id = next(self._ids)
        begun = False
        self._link.send(wire.Stream(id, env, split, _CREDIT))
        pieces = self._streams[id] = asyncio.Queue()
        try:
            while (piece := await pieces.get()) is not None:
                if isinstance(piece, Failure):
                    if begun:
                        # a part of the answer is out already, so it can only be broken off
                        raise ORSError(f"the list of tasks broke off: {piece.detail}")
                    yield piece
                    return
                begun = True
                yield piece
                if id in self._streams:
                    self._link.send(wire.More(id))
        finally:
            if self._streams.pop(id, None) is not None and self._gone is None:
                self._link.send(wire.Detach(id))

    async def status(self) -> dict[str, Any]:
        answer = await self._ask(wire.Ready)
        if isinstance(answer, Document):
            status: dict[str, Any] = load(answer.body)
            return status
        return {
            "ready": False,
            "draining": False,
            "sessions": 0,
            "calls": 0,
            "zombies": [],
            "environments": list(self._specs),
            "lost": answer.detail,
        }

    async def drain(self, grace_s: float) -> None:
        asked = self._ask(lambda id: wire.Drain(id, grace_s))
        done, _ = await asyncio.wait({asked}, timeout=grace_s + self.options.teardown_timeout_s + owner.END_S)
        if not done:
            logger.error("the process that runs the environments does not answer; its sessions are given up")

    async def close(self) -> None:
        """End every session at once, then the process."""
        if not self._closing:
            self._closing = True
            if self._gone is None and self._ready.done():
                asked = self._ask(wire.Close)
                await asyncio.wait({asked}, timeout=self.options.teardown_timeout_s + owner.END_S)
            await self._link.close()
            done, _ = await asyncio.wait({self._exited}, timeout=2 * owner.END_S)
            if not done:
                logger.error("the process that ran the environments does not end; it is killed")
                self._kill()
        await asyncio.shield(self._exited)

    # Inside

    def _ask(self, make: Callable[[int], wire.Message]) -> asyncio.Future[Any]:
        id = next(self._ids)
        asked = _Asked(self, id)
        if self._gone is not None:
            asked.set_result(self._gone)
            return asked
        try:
            self._link.send(make(id))
        except FrameError as exc:
            asked.set_result(failure("invalid_request", str(exc)))
            return asked
        self._asked[id] = asked
        return asked

    def detach(self, id: int) -> None:
        """Whoever waited for an answer has left."""
        if self._asked.pop(id, None) is not None and self._gone is None:
            self._link.send(wire.Detach(id))

    def _unavailable(self) -> Failure:
        words = "the process that runs the environments is gone"
        return failure("worker_unavailable", words, retry_after=self.options.retry_after_s)

    def _received(self, batch: Sequence[Any]) -> None:
        for message in batch:
            asked = self._asked.get(message.id)
            if asked is not None:
                asked.set_result(wire.outcome_of(message))
                del self._asked[message.id]
            elif (pieces := self._streams.get(message.id)) is not None:
                outcome = wire.outcome_of(message)
                if isinstance(outcome, Document):
                    pieces.put_nowait(outcome.body)
                else:
                    del self._streams[message.id]
                    pieces.put_nowait(outcome)
            elif type(message) is wire.Log:
                log_here(message)
            elif type(message) is wire.Started:
                self._specs = {spec.name.lower(): spec for spec in message.specs}
                if not self._ready.done():
                    self._ready.set_result(None)
            elif type(message) is wire.NotStarted:
                error = AuthoringError(f"the environments cannot be made in a process of their own: {message.detail}")
                error.__cause__ = OwnerTraceback(message.traceback)
                if not self._ready.done():
                    self._ready.set_exception(error)

    def _lost(self, fault: FrameError | None) -> None:
        """The connection is over: whatever was under way fails now."""
        if fault is not None:
            logger.error("what the process that runs the environments sent cannot be read: %s", fault)
            self._kill()
        self._gone = failure("worker_lost", "the process that ran this session is gone", ran="unknown")
        asked, self._asked = self._asked, {}
        for future in asked.values():
            if not future.done():
                future.set_result(self._gone)
        streams, self._streams = self._streams, {}
        for pieces in streams.values():
            pieces.put_nowait(self._gone)

    def _on_exit(self) -> None:
        self.loop.remove_reader(self._watched)
        os.close(self._watched)
        self._reap(owner.END_S)

    def _reap(self, patience: float) -> None:
        # not `join`, which waits for a pipe that the process's own children may hold open
        code = self._process.exitcode
        if code is None and patience > 0:
            self.loop.call_later(_LOOK_S, self._reap, patience - _LOOK_S)
            return
        self._at_exit.cancel()
        if code is not None:  # else somebody else has taken its end for his own
            self._process.close()
        if not self._ready.done():
            self._ready.set_exception(
                ORSError(
                    f"the process that runs the environments ended with {code} before it was ready; what it printed "
                    "says why. A script that starts a server does so under `if __name__ == '__main__':`"
                )
            )
        elif not self._closing:
            logger.error("the process that ran the environments ended with %s; its sessions are lost", code)
        self._link.abort()
        self._exited.set_result(None)

    def _kill(self) -> None:
        if not self._exited.done():
            self._process.kill()
