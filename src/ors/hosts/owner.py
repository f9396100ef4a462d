"""The owner process: a `LocalHost` behind a socket. `run` is what the process that a `RemoteHost` spawns runs.

It ends when its front says so, or when the front is gone: then its sessions are torn down first, within their limits.
Signals that mean the server are the front's affair. Covers: an author's import or teardown that hangs, and a socket
that some other process keeps open. Does not cover: native code that holds the interpreter at the moment the front is
killed; such a process outlives its front until that code lets go.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from ors.core.failures import Failure, failure
from ors.core.ports import Document
from ors.hosts import messages as wire
from ors.hosts.frames import FrameError
from ors.hosts.link import Link
from ors.hosts.local import HostOptions, LocalHost
from ors.hosts.owner_logs import LogForwarder
from ors.jsontext import dump
from ors.runtime import capture

__all__ = ["END_S", "Owner", "run"]

logger = logging.getLogger("ors.server")

END_S = 5.0
"""How long an owner whose sessions are torn down may take to end."""


class Owner:
    """Takes requests from a link and answers them from a host."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._host: Any = None
        self._link: Any = None
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._credits: dict[int, asyncio.Semaphore] = {}
        self._leave: asyncio.Future[int | None] = self._loop.create_future()

    async def serve(
        self, sock: socket.socket, make_offerings: Callable[[], Sequence[Any]], options: HostOptions, level: int
    ) -> None:
        """Answer until the front closes or is gone."""
        self._link = link = Link(wire.TO_OWNER, self._received, self._lost)
        await self._loop.create_unix_connection(lambda: link, sock=sock)
        logs = LogForwarder(self._loop, self._send_log)
        logs.install(level)
        try:
            if options.capture_output:
                capture.install()
            self._host = LocalHost(make_offerings(), options)
            started = wire.Started(0, list(self._host.offerings().values()))
            link.send(started)
        except BaseException as exc:  # a module that calls sys.exit() when it is imported, too
            link.send(wire.NotStarted(0, _clean(f"{type(exc).__name__}: {exc}"), _clean(_trace(exc))))
        else:
            _tune()
            closing = await self._leave
            await self._host.close()
            if closing is not None:
                link.send(wire.Done(closing))
        await link.close()

    def leave(self, closing: int | None = None) -> None:
        """End: as the request `closing` asks, or because nobody is there to ask any more."""
        if not self._leave.done():
            self._leave.set_result(closing)

    def _lost(self, _: FrameError | None) -> None:
        self.leave()

    def _send_log(self, message: wire.Log) -> None:
        if not self._link.paused:
            try:
                self._send(message)
            except FrameError:  # larger than any log line should be
                pass

    # Requests

    def _received(self, batch: Sequence[Any]) -> None:
        in_order = True
        for message in batch:
            kind = type(message)
            if kind is wire.Perform:
                if in_order:
                    self._perform(message)
                else:
                    self._loop.call_soon(self._perform, message)
            elif kind is wire.Detach:
                if in_order:
                    self._detach(message.id)
                else:
                    self._loop.call_soon(self._detach, message.id)
            elif kind is wire.More:
                if (credit := self._credits.get(message.id)) is not None:
                    credit.release()
            elif kind is wire.Level:
                logging.getLogger().setLevel(message.level)
            elif kind is wire.Close:
                self.leave(message.id)
            else:
                # these begin in the loop's next pass; what came after them must not overtake them
                in_order = False
                self._asked[message.id] = task = self._loop.create_task(self._answer(message))
                task.add_done_callback(functools.partial(self._forget, message.id))

    def _perform(self, message: wire.Perform) -> None:
        try:
            future = self._host.perform(message.sid, message.principal, message.op.op())
        except FrameError as exc:
            self._reply(message.id, failure("invalid_request", str(exc)))
            return
        if future.done():
            self._reply(message.id, future.result())
        else:
            self._asked[message.id] = future
            future.add_done_callback(functools.partial(self._performed, message.id))

    def _performed(self, id: int, future: asyncio.Future[Any]) -> None:
        self._asked.pop(id, None)
        if not future.cancelled():
            self._reply(id, future.result())

    def _detach(self, id: int) -> None:
        asked = self._asked.pop(id, None)
        if asked is not None:
            asked.cancel()

    def _forget(self, id: int, _: Any) -> None:
        self._asked.pop(id, None)

    async def _answer(self, message: Any) -> None:
        try:
            outcome = await self._ask(message)
        except FrameError as exc:
            outcome = failure("invalid_request", str(exc))
        except Exception as exc:
            logger.exception("%s failed", type(message).__name__)
            outcome = failure("internal", f"{type(exc).__name__}: {exc}", ran="unknown")
        self._reply(message.id, outcome)

    def _ask(self, message: Any) -> Any:
        host = self._host
        match message:
            case wire.Open():
                return host.open(message.sid, message.env, message.start.start(), message.principal, message.key)
            case wire.End():
                return host.end(message.sid, message.principal, message.why)
            case wire.Touch():
                return host.touch(message.sid, message.principal)
            case wire.Cancel():
                return host.cancel(message.sid, message.principal, message.call_id)
            case wire.Ask():
                return host.task(message.env, message.query())
            case wire.Stream():
                return self._stream(message)
            case wire.Ready():
                return self._status()
            case wire.Drain():
                return host.drain(message.grace_s)
        raise TypeError(f"{type(message).__name__} is no request")

    async def _status(self) -> Document:
        return Document(dump(await self._host.status()))

    async def _stream(self, message: wire.Stream) -> Failure | None:
        """Send the pieces as fast as they are consumed."""
        self._credits[message.id] = credit = asyncio.Semaphore(message.credit)
        pieces = self._host.tasks(message.env, message.split)
        try:
            async for piece in pieces:
                if isinstance(piece, Failure):
                    return piece
                await credit.acquire()
                self._send(wire.Told(message.id, piece))
            return None
        finally:
            del self._credits[message.id]
            await pieces.aclose()

    # Answers

    def _reply(self, id: int, outcome: Any) -> None:
        try:
            self._link.send(wire.answer(id, outcome))
        except FrameError as exc:
            self._send(wire.Failed(id, failure("bad_output", str(exc), ran="yes")))

    def _send(self, message: Any) -> None:
        self._link.send(message)


def run(sock: socket.socket, payload: bytes, options: HostOptions, front: int, level: int) -> None:
    """Run an owner process until its front, the process `front`, is done with it."""
    _leave_signals_to_the_front()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        loop = runner.get_loop()
        owner: list[Owner] = []
        gone = functools.partial(loop.call_soon_threadsafe, lambda: owner[0].leave() if owner else None)
        limit = options.teardown_timeout_s + END_S
        threading.Thread(target=_outlive_nobody, args=(front, gone, limit), name="ors-front-watch", daemon=True).start()

        async def serve() -> None:
            owner.append(Owner())
            await owner[0].serve(sock, lambda: pickle.loads(payload)(), options, level)  # noqa: S301 - our own front's

            # what authors left behind (threads that never end, what they registered for the exit) has a moment
            threading.Thread(target=_exit_after, args=(END_S,), name="ors-exit", daemon=True).start()

        runner.run(serve())


def _leave_signals_to_the_front() -> None:
    """What stops a server is sent to its whole process group: the front hears it too, and drains this process first."""

    def ignore(*_: Any) -> None:
        pass

    # a handler that does nothing, since SIG_IGN would be inherited by the programs that authors start
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ignore)
        os.register_at_fork(after_in_child=functools.partial(signal.signal, number, signal.SIG_DFL))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _tune() -> None:
    """The process is ours alone: see `Server.run`, which does the same to its own."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    sys.setswitchinterval(0.002)


def _trace(exc: BaseException) -> str:
    return "".join(traceback.format_exception(exc))


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _outlive_nobody(front: int, gone: Callable[[], Any], limit: float) -> None:
    try:
        watched = os.pidfd_open(front)
        # opened too late it may be another process's: then our parent is no longer the front
        if os.getppid() == front:
            select.select([watched], [], [])
    except (AttributeError, OSError):  # not on this system
        while os.getppid() == front:
            time.sleep(1.0)
    try:
        gone()
    except RuntimeError:  # its event loop has ended by itself
        pass
    _exit_after(limit)


def _exit_after(seconds: float) -> None:
    time.sleep(seconds)
    os._exit(1)
