"""An episode: a session of one task."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload
from urllib.parse import unquote

from multidict import CIMultiDict

from ors.client import keepalive
from ors.client.answers import blocks_of, output_of, parse, terminal_of, tools_of
from ors.client.calls import Call
from ors.client.endpoint import Endpoint, segment
from ors.client.limit import Limit
from ors.client.retrying import Attempts, may_pass
from ors.client.rewards import Rewards
from ors.client.tasks import Task, place_of
from ors.errors import (
    ClientError,
    RequestLost,
    RequestRefused,
    SessionLost,
    SessionTerminatedError,
    ToolCallError,
)
from ors.jsontext import JSONValueError, dump
from ors.types import ImageBlock, JSONValue, TerminalToolSpec, TextBlock, ToolOutput, ToolSpec

if TYPE_CHECKING:
    from ors.client.environment import AsyncEnvironment
    from ors.client.formats import Provider

__all__ = ["AsyncSession"]

_T = TypeVar("_T")
_log = logging.getLogger("ors.client")
_DELETE_S = 60.0
_GIVE_UP_S = 10.0


class _Masked(dict[str, str]):
    """Secrets, which no repr shows."""

    def __repr__(self) -> str:
        return f"<{len(self)} secrets>"


class AsyncSession:
    """One episode; `async with` opens and ends it.

    sid: the session's id. task: the task, where one was given. task_key: what identifies it wherever it stands, where
    the server says that. rewards: what its calls paid so far. finished: whether a
    call has ended the episode.
    """

    def __init__(
        self,
        env: AsyncEnvironment,
        task: Task | Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        api_key: str | None = None,
        split: str | None = None,
        index: int | None = None,
        toolset: str | None = None,
    ) -> None:
        self._place = place_of(task, split, index)
        if toolset is not None:
            self._place["toolset_name"] = toolset
        self._env = env.name
        self.endpoint: Endpoint = env._endpoint
        self._path = f"/{segment(env.name)}"
        self._secrets: _Masked | None = _Masked(secrets) if secrets else None
        self.task = task if isinstance(task, Task) or task is None else Task(env.name, task)
        self.task_key: str | None = None
        self.sid: str | None = None
        self.headers: CIMultiDict[str] = CIMultiDict()
        self._json_headers: CIMultiDict[str] = CIMultiDict()
        self._api_key = api_key
        self.rewards = Rewards()
        self.finished = False
        self.lost: SessionLost | None = None
        self._state = "new"
        self._owner = 0
        self._ours = False
        self._prompt: list[TextBlock | ImageBlock] | None = None
        self._asking: asyncio.Lock | None = None
        self._waiting: list[tuple[asyncio.AbstractEventLoop, Limit]] = []
        self._abandoned: list[str] = []
        self._used = 0.0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sid or 'not open yet'} of {self._env} at {self.endpoint.base_url}>"

    def __getstate__(self) -> dict[str, Any]:
        # another process can play on in the episode; only this one opens, keeps and ends it
        left = ("_waiting", "_secrets", "_abandoned", "_owner", "_asking")
        return {name: value for name, value in self.__dict__.items() if name not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._waiting = []
        self._secrets = None
        self._abandoned = []
        self._owner = 0
        self._asking = None

    # Opening and ending

    async def __aenter__(self) -> AsyncSession:
        if self._state != "new":
            raise SessionTerminatedError("a session is opened once; make another", sid=self.sid, kind=self._state)
        self._state = "opening"
        self._owner = os.getpid()
        try:
            abilities = await self.endpoint.able()
            self._ours = abilities.client_call_ids
            await self._create(abilities.idempotent_create, abilities.secrets_in_body)
        except BaseException:
            self._state = "failed"
            await self._give_up()
            raise
        self._secrets = None
        self._state = "open"
        self._used = time.monotonic()
        keepalive.watch(self)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the episode on the server. What goes wrong with that is logged, and hides nothing."""
        if self._state != "open":
            return
        self._state = "closed"
        keepalive.unwatch(self)
        if self._owner != os.getpid():
            return
        if self.lost is None:
            await self._delete(self.headers, _DELETE_S)
        await self._give_up()

    async def _create(self, idempotent: bool, in_body: bool) -> None:
        body: dict[str, Any] = {"env_name": self._env, **self._place}
        if self._secrets and in_body:
            body["secrets"] = dict(self._secrets)
        attempts: Attempts | None = None
        async with self._timely("POST /create") as limit:
            while True:
                sid = str(uuid.uuid4())
                headers = self._headers_of(sid)
                headers["Content-Type"] = "application/json"
                headers["Idempotency-Key"] = sid
                if self._secrets and "secrets" not in body:
                    headers["X-Secrets"] = _secrets_header(self._secrets)
                self._abandoned.append(sid)
                try:
                    answer = await self.endpoint.ask(
                        "POST", "/create", headers=headers, body=dump(body), sid=sid, repeatable=idempotent, limit=limit
                    )
                except ClientError as exc:
                    if exc.status == 422 and "secrets" in body and "secrets" in exc.detail:
                        # refused before anything was made; the header is the other place
                        del body["secrets"]
                        self._abandoned.remove(sid)
                        continue
                    if idempotent or not (isinstance(exc, RequestLost) or may_pass(exc)):
                        raise
                    # whether there is a session of this id cannot be known, and two at once are two: take a new id
                    if attempts is None:
                        attempts = Attempts(self.endpoint.retry, "POST /create", limit.when())
                    await attempts.again(exc, sid)
                    continue
                self._abandoned.remove(sid)
                self.sid, self.headers = sid, self._headers_of(sid)
                self.task_key = unquote(answer.headers.get("X-ORS-Task-Key", "")) or None
                del headers["Idempotency-Key"]
                headers.popall("X-Secrets", None)
                self._json_headers = headers
                return

    def _headers_of(self, sid: str) -> CIMultiDict[str]:
        headers = CIMultiDict({"X-Session-ID": sid})
        if self._api_key:
            headers["X-API-Key"] = self._api_key
        return headers

    async def _give_up(self) -> None:
        """Delete what may stand on the server from attempts to open a session that were lost."""
        abandoned, self._abandoned = self._abandoned, []
        for sid in abandoned:
            await self._delete(self._headers_of(sid), _GIVE_UP_S)

    async def _delete(self, headers: CIMultiDict[str], within_s: float) -> None:
        try:
            async with Limit(within_s) as limit:
                await self.endpoint.ask("POST", "/delete", headers=headers, body=b"", sid=self.sid, limit=limit)
        except (ClientError, TimeoutError) as exc:
            _log.warning("session %s could not be deleted; the server will end it when it expires: %s", self.sid, exc)

    # What sessions are for

    async def get_prompt(self) -> list[TextBlock | ImageBlock]:
        """The prompt. It is asked for once; on some servers asking starts the game."""
        if self._prompt is None:
            if self._asking is None:
                self._asking = asyncio.Lock()
            async with self._asking:
                if self._prompt is None:
                    path = f"{self._path}/prompt"
                    answer = await self._ask("GET", path, repeatable=self._ours)
                    value = parse(answer.body, f"GET {path}", self.sid)
                    self._prompt = blocks_of(value, f"GET {path}", self.sid)
            self._asking = None
        return list(self._prompt)

    @overload
    async def list_tools(self, format: None = None) -> list[ToolSpec]: ...
    @overload
    async def list_tools(self, format: Provider) -> list[dict[str, Any]]: ...
    async def list_tools(self, format: Provider | None = None) -> list[ToolSpec] | list[dict[str, Any]]:
        """The tools of this task, as `ToolSpec`s or in the format of a model provider."""
        tools = tools_of(await self._tools(), "/task_tools", self.sid)
        return tools if format is None else _converted(tools, format)

    async def terminal_tool(self) -> TerminalToolSpec | None:
        """The tool that takes the agent's final message, if the environment has one."""
        return terminal_of(await self._tools())

    async def _tools(self) -> Any:
        path = f"{self._path}/task_tools"
        try:
            answer = await self._ask("GET", path)
        except RequestRefused as exc:
            if exc.status not in (404, 405, 501) or exc.kind not in (None, "not_found"):
                raise
            # an older server: its tools are the same for every task
            path = f"{self._path}/tools"
            answer = await self._ask("GET", path)
        return parse(answer.body, f"GET {path}", self.sid)

    async def call_tool(self, tool_name: str, input: Mapping[str, JSONValue] = {}) -> ToolOutput:
        """Call a tool.

        Raises ToolCallError for what the agent did wrong (`ok: false`), ToolFailed where the tool broke, SessionLost
        where nothing more can come, RequestLost where only a second run could tell what became of the call.
        """
        if not isinstance(input, Mapping):
            words = f"the input of a tool is an object, not {type(input).__name__}"
            raise ToolCallError(words, sid=self.sid, kind="bad_input_shape")
        if self.finished:
            words = "the episode is finished: no tool can be called any more"
            raise ToolCallError(words, sid=self.sid, kind="episode_finished")
        plain = dict(input)
        try:
            dump(plain)
        except JSONValueError as exc:
            raise ToolCallError(f"the input of {tool_name!r}: {exc}", sid=self.sid, kind="bad_input_shape") from exc
        call = Call(
            self.endpoint, f"{self._path}/call", self._json_headers, self.sid or "", tool_name, plain, self._ours
        )
        result = await self._do(call.result, self.endpoint.call_timeout, call.overdue)
        if result["ok"] is not True:
            reason = result.get("reason")
            words = str(result.get("error") or "the call failed")
            raise ToolCallError(words, sid=self.sid, kind=reason if isinstance(reason, str) else None)
        output = output_of(result.get("output"), self.sid)
        if output.reward is not None:
            self.rewards.append(output.reward)
        if output.finished:
            self.finished = True
        return output

    # How requests are made

    async def _ask(self, method: str, path: str, *, repeatable: bool = True) -> Any:
        what = f"{method} {path}"

        def work(limit: Limit) -> Awaitable[Any]:
            return self.endpoint.ask(
                *(method, path),
                headers=self.headers,
                sid=self.sid,
                of_session=True,
                repeatable=repeatable,
                limit=limit,
            )

        def overdue() -> ClientError:
            return Attempts(self.endpoint.retry, what, None).overdue(self.sid)

        return await self._do(work, self.endpoint.timeout, overdue)

    async def _do(
        self,
        work: Callable[[Limit], Awaitable[_T]],
        seconds: float | None,
        overdue: Callable[[], ClientError],
    ) -> _T:
        if self.lost is not None:
            raise self._lost_again() from self.lost
        if self._state != "open":
            words = "the session is not open: use it inside `with`" if self._state == "new" else "the session was ended"
            raise SessionTerminatedError(words, sid=self.sid, kind="not_open" if self._state == "new" else "closed")
        limit = Limit(seconds)
        waiting = (asyncio.get_running_loop(), limit)
        self._waiting.append(waiting)
        self._used = time.monotonic()
        try:
            async with limit:
                return await work(limit)
        except SessionLost as exc:
            self.lost = exc
            raise
        except TimeoutError as exc:
            if isinstance(exc, ClientError):
                raise
            if self.lost is not None:
                raise self._lost_again() from self.lost
            raise overdue() from exc
        finally:
            self._waiting.remove(waiting)
            self._used = time.monotonic()

    def _timely(self, what: str) -> _Timely:
        return _Timely(self.endpoint, what)

    def _lost_again(self) -> SessionLost:
        lost = self.lost
        assert lost is not None
        return SessionLost(lost.detail, sid=self.sid, kind=lost.kind, status=lost.status)

    # What the keeper asks; from another thread

    def ping_due(self) -> float:
        """When this session should be pinged, by `time.monotonic`."""
        return self._used + self.endpoint.ping_interval

    def pinged(self, well: bool) -> None:
        """A ping was answered, or was not: then it is tried again soon."""
        self._used = time.monotonic() - (0.0 if well else self.endpoint.ping_interval * 0.75)

    def lose(self, error: SessionLost) -> None:
        """The server has said that the session is gone: whoever waits for it is told at once."""
        self.lost = error
        for loop, limit in list(self._waiting):
            try:
                loop.call_soon_threadsafe(self._interrupt, loop, limit)
            except RuntimeError:
                pass  # that loop is closed

    def _interrupt(self, loop: asyncio.AbstractEventLoop, limit: Limit) -> None:
        if (loop, limit) in self._waiting:
            limit.reschedule(loop.time())


class _Timely:
    """A limit whose end is the client's own error."""

    def __init__(self, endpoint: Endpoint, what: str) -> None:
        self._endpoint = endpoint
        self._what = what
        self._limit = Limit(endpoint.timeout)

    async def __aenter__(self) -> Limit:
        return await self._limit.__aenter__()

    async def __aexit__(self, *exc: Any) -> None:
        try:
            await self._limit.__aexit__(*exc)
        except TimeoutError as over:
            raise Attempts(self._endpoint.retry, self._what, None).overdue(None) from over


def _secrets_header(secrets: Mapping[str, str]) -> str:
    return base64.b64encode(dump({name: {"value": value} for name, value in secrets.items()})).decode()


def _converted(tools: Sequence[ToolSpec], format: Provider) -> list[dict[str, Any]]:
    from ors.client.formats import convert_tools

    return convert_tools(tools, format)
