"""The in-process host: the directory of the sessions that live in this process, and their end.

It is also what an owner process behind a remote host runs. Every method is called on one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ors.core.bridge import bridge, choose, described, picks_tasks, tasks_of
from ors.core.calls import ResultStore
from ors.core.failures import Failure, failure
from ors.core.limits import Limits
from ors.core.ports import (
    Document,
    Offering,
    OfferingSpec,
    Op,
    Opened,
    Outcome,
    Principal,
    Start,
    TaskQuery,
)
from ors.core.session import Session
from ors.hosts.about import About, about
from ors.hosts.capacity import Capacity
from ors.hosts.finding import find
from ors.hosts.refusals import acts_in, misdirected
from ors.runtime import Runtime, RuntimeOptions

__all__ = ["HostOptions", "LocalHost"]

logger = logging.getLogger("ors.episode")


class HostOptions(msgspec.Struct, frozen=True):
    """The limits of an owner process. Times are in seconds, sizes in bytes; see `ors.settings` for their meaning."""

    idle_s: float = 900.0
    call_ceiling_s: float = 86_400.0
    max_sessions: int = 100_000
    max_calls: int = 100_000
    result_keep_s: float = 60.0
    result_memory: int = 512 << 20
    result_disk: int = 8 << 30
    call_timeout_s: float | None = None
    setup_timeout_s: float | None = None
    teardown_timeout_s: float = 30.0
    retry_after_s: float = 2.0
    max_zombies: int = 64
    capture_output: bool = False
    runtime: RuntimeOptions = RuntimeOptions()


class LocalHost:
    """A host whose sessions live here. Make it on the event loop that will use it, and `close` it there."""

    ENDED_KEPT_S = 3600.0
    ENDED_KEPT = 100_000
    SWEEP_S = 1.0

    def __init__(
        self,
        offerings: Sequence[Offering],
        options: HostOptions | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options or HostOptions()
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        named = {offering.spec.name.lower(): offering for offering in offerings}
        self._specs = {name: described(offering) for name, offering in named.items()}
        self._single = {offering.spec.name for offering in offerings if offering.affinity == "class"}
        self._tasks = {name: tasks_of(offering) for name, offering in named.items()}
        self._offerings: dict[tuple[str, str], Offering] = {
            (name, kind): bridge(offering, kind) for name, offering in named.items() for kind in ("tools", "steps")
        }
        self._runtime = Runtime(self.options.runtime, capture=self.options.capture_output)
        self._runtime.on_blocked(self._loop_lost)
        self._store = ResultStore(
            clock,
            keep_s=self.options.result_keep_s,
            max_memory=self.options.result_memory,
            max_disk=self.options.result_disk,
        )
        self._limits = Limits(
            clock,
            self._store,
            max_calls=self.options.max_calls,
            call_s=self.options.call_timeout_s,
            setup_s=self.options.setup_timeout_s,
            teardown_s=self.options.teardown_timeout_s,
            retry_after=self.options.retry_after_s,
        )
        self._sessions: dict[str, Session] = {}
        self._capacity = Capacity(
            named, self.options.max_sessions, self.options.retry_after_s, self.options.teardown_timeout_s
        )
        self._about = About()
        self._ended: OrderedDict[str, tuple[float, str, str | None]] = OrderedDict()
        self._ending: set[asyncio.Future[None]] = set()
        self._draining = False
        self._swept: asyncio.TimerHandle | None = self._loop.call_later(self.SWEEP_S, self._sweep_again)
        self._counts = {"opened": 0, "failed": 0, "ended": 0}

    # The directory

    def offerings(self) -> Mapping[str, OfferingSpec]:
        return self._specs

    async def open(
        self, sid: str, env: str | None, start: Start, principal: Principal, key: str | None
    ) -> Opened | Failure:
        name = self._name(env)
        full = None if isinstance(name, Failure) or sid in self._sessions else await self._capacity.room(name)
        refused = self._refuse_open(sid, principal)
        if refused is not None:
            return refused
        session = self._sessions.get(sid)
        if session is not None:
            if key is not None and session.key == key and session.principal == principal:
                # the same request again, while the first is under way or after its answer was lost
                outcome: Opened | Failure = await asyncio.shield(session.joined)
                return outcome
            return failure("session_exists", "Session already exists")
        if isinstance(name, Failure):
            return name
        if full is not None:
            return full
        offering = self._offerings[name, start.kind or self._specs[name].kind]
        home = self._runtime.home(offering.spec.name, offering.affinity)
        session = Session(sid, offering, principal, self._runtime, home, self._limits)
        session.key = key
        session.on_hung = self._hung
        self._sessions[sid] = session
        self._capacity.take(name)
        # shielded: the request that started it may be cut off, the session is then still whole
        opening = self._loop.create_task(self._open(session, start))
        session.joined = opening
        return await asyncio.shield(opening)

    async def _open(self, session: Session, start: Start) -> Opened | Failure:
        found = await find(self._tasks[session.env], start, self._run)
        if isinstance(found, Failure):
            if self._sessions.get(session.id) is session:
                del self._sessions[session.id]
                self._capacity.leave(session.env)
                # calls that came before the answer wait for a session that will not be
                session.stop(found)
                session.close("not opened")
            self._counts["failed"] += 1
            return found
        if session.failure is not None:  # deleted while its task was looked up
            return session.failure
        start.secrets.hold()
        session.secrets = (start.secrets,)
        self._counts["opened"] += 1
        session.task = (found.place, found.key)
        session.begin(msgspec.structs.replace(start, task=found.task))
        about = {"session": session.id, "env": session.env, "task": found.place, "task_key": found.key}
        logger.debug("episode begins", extra=about)
        return Opened(session.id, session.env, found.key)

    def perform(self, sid: str, principal: Principal, op: Op) -> asyncio.Future[Outcome]:
        session = self._sessions.get(sid)
        if (
            session is None
            or (
                session.principal is not principal
                and session.principal != principal
                and (op.kind == "reset" or not acts_in(sid, principal))
            )
            or (op.env is not None and op.env != session.env)
        ):
            future: asyncio.Future[Outcome] = self._loop.create_future()
            future.set_result(misdirected(sid, session, self._ended, principal, op.env))
            return future
        if op.kind == "reset":
            # shielded: whoever asked may leave, and the episode then still begins
            return asyncio.shield(self._loop.create_task(self._reset(session, op, op.start or Start())))
        return session.perform(op)

    async def _reset(self, session: Session, op: Op, start: Start) -> Outcome:
        """Find the task that an episode is reset to, then reset it."""
        session.touched = self._clock()
        if start.task is None and start.ref is None and picks_tasks(session.offering):
            chosen = await choose(self._tasks[session.env], start, self._run)
            if isinstance(chosen, Failure):
                return chosen
            start = chosen
        found = await find(self._tasks[session.env], start, self._run)
        if isinstance(found, Failure):
            return found
        session.task = (found.place, found.key)
        start = msgspec.structs.replace(start, task=found.task)
        if start.secrets not in session.secrets and session.failure is None:
            start.secrets.hold()
            session.secrets = (*session.secrets, start.secrets)
        return await session.perform(msgspec.structs.replace(op, start=start))

    async def cancel(self, sid: str, principal: Principal, call_id: str) -> Document | Failure:
        session = self._sessions.get(sid)
        if session is None or (session.principal != principal and not acts_in(sid, principal)):
            return misdirected(sid, session, self._ended, principal, None)
        return session.cancel(call_id)

    async def end(self, sid: str, principal: Principal, why: str = "deleted") -> Document | Failure:
        session = self._sessions.get(sid)
        if session is None:
            return Document(b"{}")
        if session.principal != principal:
            return misdirected(sid, session, self._ended, principal, None)
        await asyncio.shield(self._end(session, why))
        return Document(b"{}")

    def touch(self, sid: str, principal: Principal) -> Awaitable[Failure | None]:
        future: asyncio.Future[Failure | None] = self._loop.create_future()
        session = self._sessions.get(sid)
        if session is None or (session.principal != principal and not acts_in(sid, principal)):
            future.set_result(misdirected(sid, session, self._ended, principal, None))
        else:
            session.touched = self._clock()
            future.set_result(session.failure)
        return future

    # Tasks

    async def task(self, env: str, query: TaskQuery) -> Document | Failure:
        name = self._name(env)
        if isinstance(name, Failure):
            return name
        if query.kind == "metadata":
            return await self._about.said(name, self._offerings[name, self._specs[name].kind], self._run)
        tasks = self._tasks[name]
        if query.kind == "version" and not getattr(tasks, "has_versions", False):
            return Document(b"null")
        return await tasks.query(query, self._run)

    async def tasks(self, env: str, split: str) -> AsyncIterator[bytes | Failure]:
        name = self._name(env)
        if isinstance(name, Failure):
            yield name
            return
        async for piece in self._tasks[name].stream(split, self._run):
            yield piece

    # The whole

    async def status(self) -> dict[str, Any]:
        threads = self._runtime.status()
        ready = not self._draining and len(threads["zombies"]) < self.options.max_zombies
        return {
            "ready": ready,
            "draining": self._draining,
            "sessions": len(self._sessions),
            "calls": self._limits.calls,
            "result_bytes": self._store.memory + self._store.disk,
            "environments": list(self._specs),
            **self._counts,
            **threads,
        }

    def count(self, env: str) -> int:
        """How many sessions an environment has, with those that are being torn down."""
        return self._capacity.taken(env.lower())

    def about(self, sid: str) -> dict[str, Any] | None:
        """When a session was made and last used, as seconds since the epoch, and how many calls it has had."""
        session = self._sessions.get(sid)
        return about(session, self._clock()) if session is not None else None

    async def drain(self, grace_s: float) -> None:
        self._draining = True
        if self._limits.calls and grace_s > 0:
            if self._limits.quiet is None or self._limits.quiet.done():
                self._limits.quiet = self._loop.create_future()
            await asyncio.wait({self._limits.quiet}, timeout=grace_s)
        why = failure("draining", "the server is shutting down", retry_after=self.options.retry_after_s)
        endings = [self._end(session, "shutdown", why) for session in list(self._sessions.values())]
        if endings or self._ending:
            await asyncio.wait({*endings, *self._ending}, timeout=self.options.teardown_timeout_s + 1)

    async def close(self) -> None:
        """End every session at once and let the threads go."""
        await self.drain(0)
        for tasks in self._tasks.values():
            if (close := getattr(tasks, "close", None)) is not None:
                await close(self._run)  # what tasks keep between questions
        if self._swept is not None:
            self._swept.cancel()
            self._swept = None
        self._runtime.stop()
        await self._runtime.join()

    def sweep(self) -> None:
        """End the sessions whose time is over, all side by side, and forget old results and old names."""
        now = self._clock()
        self._store.sweep()
        idle, ceiling = self.options.idle_s, self.options.call_ceiling_s
        for session in list(self._sessions.values()):
            if session.busy and session.active(now, ceiling):
                session.touched = now
            elif now - session.touched >= idle and session.joined.done():
                self._end(session, "expired")
        while self._ended:
            when, _, _ = next(iter(self._ended.values()))
            if now - when < self.ENDED_KEPT_S and len(self._ended) <= self.ENDED_KEPT:
                break
            self._ended.popitem(last=False)

    # Inside

    def _sweep_again(self) -> None:
        self._swept = self._loop.call_later(self.SWEEP_S, self._sweep_again)
        self.sweep()

    async def _run(self, work: Any) -> Any:
        # class methods of an environment that keeps to one thread run on it too
        group = work.serial or "tasks"
        return await self._runtime.run(work, self._runtime.home(group, "class" if group in self._single else "any"))

    def _name(self, env: str | None) -> str | Failure:
        if env is None:
            return next(iter(self._specs))
        name = env.lower()
        return name if name in self._specs else failure("unknown_environment", f"unknown environment '{env}'")

    def _refuse_open(self, sid: str, principal: Principal) -> Failure | None:
        wait = self.options.retry_after_s
        if principal.kind != "trainer":
            return failure("forbidden", "an agent's token opens no sessions")
        if self._draining:
            return failure("draining", "the server is shutting down; it opens no new sessions", retry_after=wait)
        if sid in self._ended:
            return failure("session_ended", f"Session {self._ended[sid][1]}; its id cannot be used again")
        if len(self._sessions) >= self.options.max_sessions and sid not in self._sessions:
            words = f"{len(self._sessions)} sessions are open, as many as this server allows"
            return failure("too_many_sessions", words, retry_after=wait)
        return None

    def _end(self, session: Session, why: str, answer: Failure | None = None) -> asyncio.Future[None]:
        """Take a session out of the directory, cut its calls and tear it down. Ends nothing twice."""
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
            self._ended[session.id] = (self._clock(), why, session.principal.key)
            self._counts["ended"] += 1
            session.stop(answer or failure("session_ended", f"Session {why}"))
            over = session.close(why)
            self._capacity.clearing(session.env, over)
            self._ending.add(over)
            over.add_done_callback(lambda _: self._ended_for_good(session, why, over))
            return over
        return session.close(why)

    def _ended_for_good(self, session: Session, why: str, over: asyncio.Future[None]) -> None:
        self._ending.discard(over)
        tally = session.tally
        logger.info(
            "episode ended",
            extra={
                "session": session.id,
                "env": session.env,
                "task": session.task[0],
                "why": why,
                "task_key": session.task[1],
                "seconds": round(self._clock() - session.started, 3),
                "calls": tally.calls,
                "failed": tally.failed,
                "reward": tally.reward,
                "finished": tally.finished or session.finished,
            },
        )
        # after the line above, so that no secret can be in it
        for held in session.secrets:
            held.release()

    def _hung(self, session: Session, answer: Failure) -> None:
        if session.failure is None:
            self._end(session, "lost: a tool hung", answer)

    def _loop_lost(self, author: Any, what: str) -> None:
        answer = failure(
            "loop_blocked", f"{what} blocked the event loop that this session used; it is lost", ran="unknown"
        )
        for session in list(self._sessions.values()):
            if session.runs_on(author):
                self._end(session, "lost: its event loop was blocked", answer)
