"""A visit to a server: the budget of requests, the sessions that were opened, and the end of each of them."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from ors.conformance.events import read_stream
from ors.conformance.judging import NotApplicable
from ors.conformance.wire import Answer, BadJSON, Speaker

__all__ = ["BudgetSpent", "GaveUp", "Visit"]

T = TypeVar("T")

SID = "X-Session-ID"
_TIMEOUTS = 6
"""Requests without an answer after which a server is taken for one that no longer answers."""


class BudgetSpent(NotApplicable):
    """No more requests may be sent."""


class GaveUp(NotApplicable):
    """The server has stopped answering."""


class Visit:
    """One check of one server. Whatever happens, `leave` deletes every session that may be open there.

    max_requests: all requests, those that delete sessions included: one for each session that may be open is kept back.
    """

    def __init__(
        self,
        speaker: Speaker,
        *,
        max_requests: int = 1000,
        patient: bool = False,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self.speaker = speaker
        self.max_requests = max_requests
        self.patient = patient
        self.secrets = dict(secrets or {})
        """What sessions are given where a check does not say otherwise."""
        self.secrets_in_header = False
        self.requests = 0
        self.undeleted: list[str] = []
        """Sessions whose deletion the server did not answer."""
        self.all_answers: list[Answer] = []
        self._open: dict[str, None] = {}
        self._memory: dict[Any, asyncio.Future[Any]] = {}
        self._unanswered = 0
        self._gives_ids: bool | None = None

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        """Send a request. Raises BudgetSpent, or GaveUp where the server did not answer many times."""
        self.spend(1)
        return await self._ask(method, path, **options)

    async def _ask(self, method: str, path: str, **options: Any) -> Answer:
        answer = await self.speaker.ask(method, path, **options)
        if answer.problem is not None:
            self._unanswered += 1
        elif 200 <= answer.status < 300:
            self._unanswered = max(0, self._unanswered - 1)
        if len(self.all_answers) < 2000 and sum(map(len, (p for _, p in answer.pieces))) < 200_000:
            self.all_answers.append(answer)
        return answer

    def spend(self, requests: int, kept_back: int = 0) -> None:
        """Count requests. Raises BudgetSpent, or GaveUp where the server did not answer many times."""
        if self._unanswered >= _TIMEOUTS:
            raise GaveUp(
                f"the server left {self._unanswered} requests unanswered or broke them off, so no more are sent"
            )
        if self.requests + requests + kept_back + len(self._open) > self.max_requests:
            raise BudgetSpent(f"the limit of {self.max_requests} requests is reached")
        self.requests += requests

    async def once(self, key: Any, make: Callable[[], Awaitable[T]]) -> T:
        """What `make` came to when it was first asked for under this key."""
        if key not in self._memory:
            self._memory[key] = asyncio.ensure_future(make())
        value: T = await asyncio.shield(self._memory[key])
        return value

    # Sessions

    def with_secrets(self, body: Any, headers: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
        """The body and headers of a `/create` with the secrets of the user, in the body until a server refuses that."""
        if not self.secrets or not isinstance(body, dict) or "secrets" in body or "X-Secrets" in headers:
            return body, dict(headers)
        if not self.secrets_in_header:
            return {**body, "secrets": self.secrets}, dict(headers)
        told = json.dumps({name: {"value": value} for name, value in self.secrets.items()})
        return body, {**headers, "X-Secrets": base64.b64encode(told.encode()).decode()}

    async def new_sid(self) -> str:
        """An id for a session: one of the server's where it gives them, else one of ours."""
        if self._gives_ids is not False:
            self.spend(1, kept_back=1)
            answer = await self._ask("POST", "/create_session")
            sid = sid_of(answer)
            self._gives_ids = sid is not None
            if sid is not None:
                self._open[sid] = None
                return sid
        return uuid.uuid4().hex

    def may_be_open(self, sid: str) -> None:
        """Remember to delete a session. Raises BudgetSpent where no request is left to delete it with."""
        if sid not in self._open:
            self.spend(0, kept_back=1)
            self._open[sid] = None

    def room_for_a_session(self) -> None:
        """Raise BudgetSpent unless a request for an id and one that deletes its session may be sent."""
        self.spend(0, kept_back=2)

    def forget(self, key: Any) -> None:
        """Let `once` ask again."""
        self._memory.pop(key, None)

    async def delete(self, sid: str) -> Answer:
        """Delete a session of ours."""
        self.requests += 1
        self._open.pop(sid, None)
        self.undeleted.append(sid)
        try:
            answer = await self._ask("POST", "/delete", headers={SID: sid})
        except BaseException:
            # whether it arrived is not known; it is sent again before we leave
            self.undeleted.remove(sid)
            self._open[sid] = None
            raise
        if answer.problem is None:
            self.undeleted.remove(sid)
        return answer

    async def delete_all(self) -> None:
        """Delete every session that may be open."""
        while self._open:
            sids = list(self._open)[:16]
            await asyncio.gather(*(self.delete(sid) for sid in sids))

    async def leave(self) -> None:
        """End whatever of ours still runs, and delete every session that may be open."""
        for future in self._memory.values():
            future.cancel()
        await asyncio.gather(*self._memory.values(), return_exceptions=True)
        await self.delete_all()


def sid_of(answer: Answer) -> str | None:
    """The id in an answer of `/create_session`, JSON or a stream; None where there is none that can be sent again."""
    sid: Any = None
    if answer.problem is None and answer.status == 200:
        if answer.media_type == "text/event-stream":
            event = read_stream(answer).first("task_id")
            sid = event.text.strip() if event else None
        else:
            try:
                body = answer.json()
            except BadJSON:
                body = None
            sid = body.get("sid") if isinstance(body, dict) else None
    usable = isinstance(sid, str) and 0 < len(sid) <= 512 and sid.isascii() and sid.isprintable() and sid == sid.strip()
    return sid if usable else None
