"""A place: one environment of a server, what is known of it, and the ways to ask it. Checks are given one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from ors.conformance.inputs import make_input
from ors.conformance.judging import Call, Failed, NotApplicable, array, object_of, require
from ors.conformance.visit import SID, Visit
from ors.conformance.wire import Answer

__all__ = ["PROBE", "PROBE_COUNTED", "Place", "Session"]

T = TypeVar("T")

PROBE = "conformanceprobe"
PROBE_COUNTED = "conformancecounted"
_LISTED_AT_MOST = 5000
"""Tasks of a split that are listed whole."""


@dataclass(frozen=True)
class Session:
    """An episode of ours: its id, its task's place, and the answer to `/create`."""

    sid: str
    split: str
    index: int
    created: Answer


_PATIENCE_S = 5.0


class Place:
    """One environment of the server that is visited."""

    def __init__(self, visit: Visit, env: str, names: list[str]) -> None:
        self.visit = visit
        self.env = env
        self.names = names
        """Every environment of the server, in its order."""

    @property
    def is_probe(self) -> bool:
        """Whether it is the probe."""
        return self.env.lower() == PROBE

    @property
    def is_first(self) -> bool:
        """Whether it is the server's default."""
        return self.env == self.names[0]

    # Requests

    async def get(self, route: str, sid: str | None = None, *, env: str | None = None, **options: Any) -> Answer:
        """GET a route of this environment, or of another."""
        return await self.visit.ask("GET", self.path(route, env), **_with_sid(options, sid))

    async def post(
        self, route: str, body: Any = None, sid: str | None = None, *, env: str | None = None, **options: Any
    ) -> Answer:
        """POST to a route of this environment, or of another."""
        return await self.visit.ask("POST", self.path(route, env), body=body, **_with_sid(options, sid))

    def path(self, route: str, env: str | None = None) -> str:
        """The path of a route."""
        return f"/{quote(env if env is not None else self.env, safe='')}/{route}"

    async def once(self, key: Any, make: Callable[[], Awaitable[T]]) -> T:
        """What is asked of this environment only once."""
        return await self.visit.once((self.env, key), make)

    # What there is

    async def splits_answer(self) -> Answer:
        """The answer of `/splits`."""
        return await self.once("splits", lambda: self.get("splits"))

    async def splits(self) -> list[str]:
        """The names of the splits. Raises NotApplicable where there are none that can be used."""
        try:
            found = array(await self.splits_answer())
        except Failed as exc:
            raise NotApplicable(f"it needs /splits: {exc}") from None
        names = [one["name"] for one in found if isinstance(one, dict) and isinstance(one.get("name"), str)]
        if not names:
            raise NotApplicable("it needs a split, and /splits names none")
        return names

    async def split(self) -> str:
        """The split whose tasks are played: the first that has some."""

        async def choose() -> str:
            names = await self.splits()
            for name in names[:5]:
                with contextlib.suppress(Failed):
                    if (await self._counted(name)) > 0:
                        return name
            return names[0]

        return await self.once("split", choose)

    async def count_answer(self) -> Answer:
        """The answer of `/num_tasks` for the split that is played."""
        split = await self.split()
        return await self.once(("count", split), lambda: self.post("num_tasks", {"split": split}))

    async def _counted(self, split: str) -> int:
        answer = await self.once(("count", split), lambda: self.post("num_tasks", {"split": split}))
        count = object_of(answer, "num_tasks")["num_tasks"]
        require(isinstance(count, int) and not isinstance(count, bool), "`num_tasks` is no whole number", answer)
        return int(count)

    async def count(self) -> int:
        """How many tasks the split has. Raises NotApplicable where that is not told."""
        try:
            count = await self._counted(await self.split())
        except Failed as exc:
            raise NotApplicable(f"it needs /num_tasks: {exc}") from None
        if count < 1:
            raise NotApplicable(f"it needs a task, and the split {await self.split()!r} has none")
        return count

    async def listing_answer(self) -> Answer:
        """The answer of `/tasks`. Raises NotApplicable where the split is too large to list."""
        split = await self.split()
        with contextlib.suppress(Failed):
            if (count := await self._counted(split)) > _LISTED_AT_MOST:
                raise NotApplicable(f"the split {split!r} has {count} tasks, too many to list in a check")
        answer = await self.once("tasks", lambda: self.post("tasks", {"split": split}))
        if answer.status == 501 or (answer.status == 400 and b"index-based" in answer.body):
            raise NotApplicable("the environment does not list its tasks")
        return answer

    async def listing(self) -> list[Any]:
        """The tasks of the split. Raises NotApplicable."""
        try:
            return array(await self.listing_answer(), "tasks")
        except Failed as exc:
            raise NotApplicable(f"it needs /tasks: {exc}") from None

    async def task_answer(self, index: int) -> Answer:
        """The answer of `/task` for an index."""
        split = await self.split()
        return await self.once(("task", index), lambda: self.post("task", {"split": split, "index": index}))

    async def a_task(self) -> dict[str, Any]:
        """The first task, from whichever route tells it. Raises NotApplicable."""
        with contextlib.suppress(Failed):
            task = object_of(await self.task_answer(0)).get("task")
            if isinstance(task, dict):
                return task
        with contextlib.suppress(NotApplicable):
            for task in (await self.listing())[:1]:
                if isinstance(task, dict):
                    return task
        raise NotApplicable("it needs a task, and neither /task nor /tasks tells one")

    async def range_of(self, start: int | None, stop: int | None, **more: Any) -> list[Any]:
        """The tasks of a slice. Raises Failed."""
        body = {"split": await self.split()}
        body |= {key: value for key, value in (("start", start), ("stop", stop)) if value is not None}  # type: ignore[misc]
        answer = await self.once(("range", start, stop), lambda: self.post("task_range", body))
        return array(answer, "tasks")

    async def tools_answer(self) -> Answer:
        """The answer of `/tools`."""
        return await self.once("tools", lambda: self.get("tools"))

    async def tools(self) -> list[dict[str, Any]]:
        """The tools that can be called by a name. Raises NotApplicable."""
        try:
            found = array(await self.tools_answer(), "tools")
        except Failed as exc:
            raise NotApplicable(f"it needs /tools: {exc}") from None
        return [one for one in found if isinstance(one, dict) and isinstance(one.get("name"), str) and one["name"]]

    # Sessions and calls

    async def create(self, sid: str, body: Any, **options: Any) -> Answer:
        """POST `/create`; the session is deleted at the end, whatever the answer says."""
        self.visit.may_be_open(sid)
        body, headers = self.visit.with_secrets(body, options.pop("headers", {}))
        asking = asyncio.ensure_future(
            self.visit.ask("POST", "/create", body=body, **_with_sid({**options, "headers": headers}, sid))
        )
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            # a request to delete the session that came before this one was carried out would delete nothing
            await asyncio.wait({asking}, timeout=_PATIENCE_S)
            asking.cancel()
            raise

    async def open(self, index: int = 0) -> Session:
        """Open a session of a task. Raises NotApplicable where that is refused or can come to nothing."""
        await self.playable()
        return await self._open(index)

    async def _open(self, index: int = 0) -> Session:
        split = await self.split()
        sid = await self.visit.new_sid()
        body = {"env_name": self.env, "split": split, "index": index}
        created = await self.create(sid, body)
        if created.status == 422 and self.visit.secrets and not self.visit.secrets_in_header:
            self.visit.secrets_in_header = True
            created = await self.create(sid, body)
        if created.problem is not None or created.status != 200:
            raise NotApplicable(f"it needs a session, and /create says {created.problem or created.status}")
        return Session(sid, split, index, created)

    async def playable(self) -> None:
        """Raise NotApplicable where episodes are created and then break: one row says so, not all."""
        answer = await self.prompt_answer()
        if answer.problem is None and answer.status >= 500:
            raise NotApplicable(
                f"episodes break before their prompt ({answer.status}); where they need secrets, --secret gives them"
            )

    @contextlib.asynccontextmanager
    async def session(self, index: int = 0) -> AsyncIterator[Session]:
        """A session for the length of a `with`."""
        session = await self.open(index)
        try:
            yield session
        finally:
            await self.visit.delete(session.sid)

    async def shared(self) -> Session:
        """A session for all checks that only look."""
        await self.playable()
        return await self.created()

    async def created(self) -> Session:
        """The same session, whether or not anything comes of it."""
        return await self.once("session", self._open)

    async def prompt_answer(self) -> Answer:
        """The answer of `/prompt` of that session, whatever it is."""
        sid = (await self.created()).sid
        return await self.once("prompt", lambda: self.get("prompt", sid))

    async def prompt(self) -> Answer:
        """The answer of `/prompt` where episodes do not break."""
        await self.playable()
        return await self.prompt_answer()

    async def call(
        self, session: Session | str, name: str, input: Any, task_id: str | None = None, **options: Any
    ) -> Call:
        """Call a tool."""
        sid = session if isinstance(session, str) else session.sid
        body = {"name": name, "input": input, **({"task_id": task_id} if task_id is not None else {})}
        headers = {"Accept": "text/event-stream", **options.pop("headers", {})}
        return Call(await self.post("call", body, sid, headers=headers, **options), name)

    async def a_call(self) -> Call:
        """A call of some tool with an input made for it, in the shared session; one that succeeds if possible."""

        async def make() -> Call:
            session = await self.shared()
            last: Call | None = None
            for spec in (await self._callable())[:4]:
                last = await self.call(session, spec["name"], make_input(spec.get("input_schema")))
                if last.succeeded:
                    break
            if last is None:
                raise NotApplicable("it needs a call, and no input could be made for any tool")
            return last

        return await self.once("call", make)

    async def _callable(self) -> list[dict[str, Any]]:
        """Tools for which an input can be made; of the probe, the harmless one first."""
        found = [spec for spec in await self.tools() if make_input(spec.get("input_schema")) is not None]
        return sorted(found, key=lambda spec: self.is_probe and spec["name"] != "echo")

    async def output(self) -> tuple[dict[str, Any], Answer]:
        """The output of a call that succeeded. Raises NotApplicable."""
        call = await self.a_call()
        try:
            return call.output(), call.answer
        except Failed as exc:
            raise NotApplicable(f"it needs a call that succeeds: {exc}") from None

    async def probed(self, name: str, **input: Any) -> Call:
        """A call of a tool of the probe in a session of its own kind, once for each input."""
        session = await self.once("session for tools", self.open)
        return await self.once(("probed", name, repr(input)), lambda: self.call(session, name, input))


def _with_sid(options: dict[str, Any], sid: str | None) -> dict[str, Any]:
    if sid is not None:
        options["headers"] = {**options.get("headers", {}), SID: sid}
    return options
