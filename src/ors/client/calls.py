"""One call of a tool, from its request to its result, through whatever happens to the connection.

Where the server takes ids of the client's making, a call is sent again under its id: it joins the call or gets its
result. Servers that only know ids of their own get a call once; once they have said its id, the result is fetched with
that; before, a lost connection is a `RequestLost`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from multidict import CIMultiDict

from ors.client.answers import LOST_KINDS, parse, refusal
from ors.client.endpoint import Endpoint, may_have_run
from ors.client.limit import Limit
from ors.client.retrying import Attempts, may_pass
from ors.client.sse import Event, EventReader
from ors.client.transport import Answer, NetworkError, Stream
from ors.errors import ClientError, ProtocolError, RequestLost, SessionLost, ToolFailed
from ors.jsontext import dump

__all__ = ["Call"]

SILENCE_S = 45.0
"""Servers say something at least every 10 s while a call runs; a longer silence is a lost connection."""
_LONG_S = 30.0
_GONE = frozenset(("call_forgotten", "unknown_call"))


class Call:
    """A call under way."""

    __slots__ = ("_attempts", "_endpoint", "_headers", "_id", "_input", "_name", "_ours", "_path", "_sid")

    def __init__(
        self, endpoint: Endpoint, path: str, headers: CIMultiDict[str], sid: str, name: str, input: Any, ours: bool
    ) -> None:
        self._endpoint = endpoint
        self._path = path
        self._headers = headers
        self._sid = sid
        self._name = name
        self._input = input
        self._ours = ours
        self._id: str | None = os.urandom(16).hex() if ours else None
        self._attempts: Attempts | None = None

    async def result(self, limit: Limit) -> dict[str, Any]:
        """The result as the server wrote it, a `RunToolOutput`."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            failed: ClientError | NetworkError
            try:
                return await self._exchange()
            except NetworkError as exc:
                if exc.sent and self._id is None:
                    raise self._lost(str(exc)) from exc
                failed = exc
            except ClientError as exc:
                if not may_pass(exc):
                    raise
                if self._id is None and may_have_run(exc):
                    raise self._lost(str(exc)) from exc
                failed = exc
            if self._attempts is None:
                self._attempts = Attempts(self._endpoint.retry, f"the call of {self._name!r}", limit.when())
            if loop.time() - began > _LONG_S:
                self._attempts.forget()
            await self._attempts.again(failed, self._sid)

    def overdue(self) -> ClientError:
        """The error for a call that took longer than it may."""
        attempts = self._attempts or Attempts(self._endpoint.retry, f"the call of {self._name!r}", None)
        return attempts.overdue(self._sid)

    def _lost(self, why: str) -> RequestLost:
        words = f"the call of {self._name!r} may have run or not, and this server could only run it again: {why}"
        return RequestLost(words, sid=self._sid, kind="connection_lost")

    async def _exchange(self) -> dict[str, Any]:
        body: dict[str, Any] = {"name": self._name, "input": self._input}
        if self._id is not None:
            body["task_id"] = self._id
        # a server that issues its ids may be silent during setup, and asking it again would run the tool again
        silence = SILENCE_S if self._id is not None else None
        stream: Stream | None = None
        try:
            async with Limit(silence) as patience:
                stream = await self._endpoint.transport().open(
                    "POST", self._endpoint.url(self._path), self._headers, dump(body)
                )
                if stream.status != 200:
                    answer = Answer(stream.status, stream.headers, await stream.rest())
                    raise refusal(answer, f"POST {self._path}", self._sid, of_session=True)
                kind = stream.headers.get("Content-Type", "")
                if kind.startswith("application/json"):
                    return self._checked(await stream.rest())
                return await self._read(stream, patience)
        except TimeoutError as exc:
            raise NetworkError(f"nothing came for {SILENCE_S:g} s", sent=True) from exc
        finally:
            if stream is not None:
                stream.close()

    async def _read(self, stream: Stream, patience: Limit) -> dict[str, Any]:
        reader = EventReader()
        pieces: list[bytes] = []
        while chunk := await stream.read():
            for event in reader.feed(chunk):
                name = event.name
                if name == "end":
                    pieces.append(event.data)
                    await stream.drain()
                    return self._checked(b"".join(pieces))
                if name == "chunk":
                    pieces.append(event.data)
                elif name == "task_id":
                    self._named(event.data.decode("utf-8", "replace"))
                elif name == "error":
                    raise self._broken(event)
            if self._id is not None:
                patience.reschedule(asyncio.get_running_loop().time() + SILENCE_S)
        raise NetworkError("the stream ended before the result", sent=True)

    def _named(self, issued: str) -> None:
        if self._id is None and issued:
            self._id = issued

    def _checked(self, body: bytes) -> dict[str, Any]:
        result = parse(body, f"POST {self._path}", self._sid)
        if not isinstance(result, dict) or "ok" not in result:
            raise ProtocolError(f"POST {self._path} answered no result", sid=self._sid, kind="bad_answer")
        return result

    def _broken(self, event: Event) -> ClientError:
        """What an error event says: words for people, and from our server a comment for programs."""
        words = event.data.decode("utf-8", "replace")
        about = _about(event.comments)
        kind, retryable = about.get("kind"), about.get("retryable")
        if kind is None and words.strip() == "unknown task_id":
            kind = "unknown_call"
        given: dict[str, Any] = {
            "sid": self._sid,
            "kind": kind,
            "retryable": retryable if isinstance(retryable, bool) else None,
        }
        if kind in LOST_KINDS:
            return SessionLost(words, **given)
        if kind in _GONE:
            return RequestLost(f"the result of the call of {self._name!r} is no longer there: {words}", **given)
        if retryable is True and about.get("ran") == "no":
            # what passes is asked again as if it had come with its status
            return ToolFailed(words, **{**given, "status": 503})
        return ToolFailed(words or "the tool broke without a word", **given)


def _about(comments: tuple[bytes, ...]) -> Mapping[str, Any]:
    for comment in reversed(comments):
        mark, _, text = comment.strip().partition(b" ")
        if mark == b"failure":
            try:
                said = parse(text, "the server")
            except ProtocolError:
                return {}
            return said if isinstance(said, dict) else {}
    return {}
