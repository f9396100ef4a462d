"""The ORS routes: sessions, prompts, tools and calls. Tasks are in `ors.faces.tasks`."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any
from urllib.parse import quote

from ors.core.failures import Failure
from ors.core.ports import Document, Host, Op, Outcome, Start, TaskRef, ToolOutcome
from ors.core.secrets import Secrets
from ors.errors import RequestError
from ors.faces.http import Reply, Request, Route, failure_reply, json_reply
from ors.faces.ors.ids import IdMint
from ors.faces.ors.secrets_header import secrets_from_header
from ors.faces.ors.sse import EventStream, Patience, end_event, error_event, send_whole, task_id_event
from ors.jsontext import dump
from ors.types import CreateSession, ToolCall

__all__ = ["ORSFace"]

# Failures of a call that its own stream tells; all others are about the session and have an HTTP status while they can.
_TOLD_IN_STREAM = frozenset(
    [
        "tool_failed",
        "tool_timeout",
        "tool_hung",
        "bad_output",
        "call_cancelled",
        "unknown_call",
        "call_conflict",
        "call_forgotten",
        "internal",
    ]
)
_SESSION_KINDS = ("unknown_session", "session_ended", "forbidden", "setup_failed", "setup_timeout")
# How a session can be lost while somebody waits for it.
_LOST_KINDS = ("draining", "tool_hung", "loop_blocked", "worker_lost", "worker_unavailable")
_ASKED_KINDS = (*_SESSION_KINDS, *_LOST_KINDS, "wrong_environment", "tool_timeout")
_MORE = b'"supports_score_group":false,"message_block_types":["text","image"]}'
_SLOW_SETUP_S = 25.0


class ORSFace:
    """The Open Reward Standard over a host."""

    def __init__(self, host: Host, *, max_streams: int = 20_000, id_key: bytes | None = None, retry_after: float = 2.0):
        self._host = host
        self._ids = IdMint(id_key)
        self._patience = Patience()
        self._max_streams = max_streams
        self._retry_after = retry_after
        self.streams = 0

    def routes(self) -> list[Route]:
        """The route table."""
        sid = {"type": "object", "properties": {"sid": {"type": "string"}}, "required": ["sid"]}
        status = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
        create = (
            *("unknown_environment", "unknown_split", "invalid_index", "bad_task", "bad_splits", "task_failed"),
            *("not_supported", "session_exists", "session_ended", "toolset_not_supported", "too_many_sessions"),
            *("draining", "worker_lost", "worker_unavailable"),
        )
        call = (*_ASKED_KINDS, "too_many_calls", "too_many_streams", "results_full")
        cancelled = {"type": "object", "properties": {"cancelled": {"type": "boolean"}}, "required": ["cancelled"]}
        names = {"type": "array", "items": {"type": "string"}}
        secrets = {"type": "object", "properties": {"secrets": names}, "required": ["secrets"]}
        return [
            Route(
                "GET",
                "/list_environments",
                self.environments,
                "List the environments",
                answer=names,
                tag="Task API",
            ),
            Route("GET", "/tools", self.tools, "List the tools", "env", answer="Tools", tag="Environments"),
            Route("POST", "/create_session", self.create_session, "Get a session id", answer=sid, stream=True),
            Route(
                "POST",
                "/create",
                self.create,
                "Open the session: start an episode of one task",
                session=True,
                body=CreateSession,
                answer=sid,
                kinds=create,
                headers=("X-Secrets", "Idempotency-Key"),
            ),
            Route(
                "GET",
                "/prompt",
                self.prompt,
                "Get the prompt",
                "env",
                True,
                answer="Blocks",
                kinds=(*_ASKED_KINDS, "prompt_failed", "starting"),
            ),
            Route(
                "GET",
                "/task_tools",
                self.task_tools,
                "List the tools of this task",
                "env",
                True,
                answer="Tools",
                kinds=(*_ASKED_KINDS, "tool_failed", "bad_output"),
            ),
            Route(
                "POST",
                "/call",
                self.call,
                "Call a tool",
                "env",
                True,
                body=ToolCall,
                answer="RunToolOutput",
                stream=True,
                kinds=call,
            ),
            Route(
                "POST",
                "/cancel",
                self.cancel,
                "Cancel a running call",
                session=True,
                answer=cancelled,
                kinds=("unknown_session", "session_ended", "forbidden", "unknown_call"),
                headers=("X-Call-ID",),
            ),
            Route(
                "POST", "/ping", self.ping, "Keep the session alive", session=True, answer=status, kinds=_SESSION_KINDS
            ),
            Route(
                "POST",
                "/delete",
                self.delete,
                "End the session",
                session=True,
                answer=sid,
                kinds=("forbidden",),
            ),
            Route(
                "POST",
                "/delete_session",
                self.delete,
                "End the session (alias)",
                session=True,
                answer=sid,
                kinds=("forbidden",),
            ),
            Route(
                "GET",
                "/v1/environments/{owner}/{name}/required-secrets",
                self.required_secrets,
                "Secrets that the environment needs: none are declared",
                answer=secrets,
                tag="Environments",
            ),
        ]

    # Environments

    async def environments(self, request: Request) -> Reply:
        # environments of tools in lower case, as their clients expect it; others as they were named
        specs = self._host.offerings()
        return json_reply(dump([name if spec.kind == "tools" else spec.name for name, spec in specs.items()]))

    async def required_secrets(self, request: Request) -> Reply:
        return json_reply(b'{"secrets":[]}')

    async def tools(self, request: Request) -> Reply:
        spec = self._host.offerings()[request.env or ""]
        return json_reply(b'{"tools":%s,"terminal_tool":%s,%s' % (spec.tools, spec.terminal, _MORE))

    # Sessions

    async def create_session(self, request: Request) -> Reply | None:
        sid = self._ids.make()
        if b"text/event-stream" in request.headers.get(b"accept", b""):
            await send_whole(request.send, task_id_event(sid) + b"event: end\r\ndata: \r\n\r\n")
            return None
        return json_reply(b'{"sid":"%s"}' % sid.encode())

    async def create(self, request: Request) -> Reply:
        body = await request.parse(CreateSession)
        if body.toolset_name is not None:
            raise RequestError(
                "toolset_not_supported",
                f"unknown toolset '{body.toolset_name[:100]}'; this server offers no toolset by name",
            )
        secrets = secrets_from_header(request.headers.get(b"x-secrets"))
        secrets.update(body.secrets or {})
        ref = None
        if body.split is not None and body.index is not None:
            ref = TaskRef(body.split, body.index)
        key = None
        if repeat := request.header(b"idempotency-key"):
            key = f"{repeat}:{hashlib.blake2b(await request.body(), digest_size=16).hexdigest()}"
        start = Start(ref=ref, task=body.task_spec, secrets=Secrets(secrets), kind="tools")
        opened = await self._host.open(request.sid, body.env_name or request.env, start, request.principal, key)
        if isinstance(opened, Failure):
            return failure_reply(opened)
        # in a header: the body is what the standard says and nothing else
        told = [(b"x-ors-task-key", quote(opened.task_key).encode())] if opened.task_key is not None else []
        return json_reply(b'{"sid":%s}' % dump(request.sid), headers=told)

    async def ping(self, request: Request) -> Reply:
        failed = await self._host.touch(request.sid, request.principal)
        return failure_reply(failed) if failed is not None else json_reply(b'{"status":"ok"}')

    async def delete(self, request: Request) -> Reply:
        ended = await self._host.end(request.sid, request.principal, "deleted")
        return failure_reply(ended) if isinstance(ended, Failure) else json_reply(b'{"sid":%s}' % dump(request.sid))

    async def prompt(self, request: Request) -> Reply:
        asked = self._host.perform(request.sid, request.principal, Op("prompt", env=_named(request)))
        if request.header(b"user-agent").startswith("openreward"):
            # this client takes a silence of 30 s for a lost connection and asks again; a 503 makes it wait
            waiting_for = asyncio.ensure_future(asked)
            done, _ = await asyncio.wait({waiting_for}, timeout=_SLOW_SETUP_S)
            if not done:
                waiting_for.cancel()
                waiting = Failure("starting", "Environment still starting.", True, "no", 2.0)
                return failure_reply(waiting, [(b"x-backend-state", b"starting")])
            outcome: Outcome = done.pop().result()
        else:
            outcome = await asked
        return _document(outcome)

    async def task_tools(self, request: Request) -> Reply:
        outcome = await self._host.perform(request.sid, request.principal, Op("tools", env=_named(request)))
        if not isinstance(outcome, Document):
            return _document(outcome)
        spec = self._host.offerings()[outcome.env or request.env or ""]
        return json_reply(b'{"tools":%s,"terminal_tool":%s,%s' % (outcome.body, spec.terminal, _MORE))

    # Calls

    async def call(self, request: Request) -> Reply | None:
        call = await request.parse(ToolCall)
        if self.streams >= self._max_streams:
            words = f"{self.streams} calls are being waited for, as many as this server allows"
            return failure_reply(Failure("too_many_streams", words, True, "no", self._retry_after))
        call_id, mode = call.task_id, "run"
        if call_id is None:
            call_id = self._ids.make()
        else:
            # an id that we made can only mean a call that was asked for before: it never starts one
            mode = "attach" if self._ids.ours(call_id) else "run_or_attach"
        op = Op("call", call_id, call.name, call.input, mode, _named(request))  # type: ignore[arg-type]
        asked: Any = self._host.perform(request.sid, request.principal, op)
        stream = EventStream(request, call_id, asked)
        self._patience.add(asyncio.get_running_loop(), stream)
        self.streams += 1
        try:
            outcome = await asked
        except asyncio.CancelledError:
            if stream.gone:
                return None
            raise
        finally:
            self.streams -= 1
            self._patience.remove(stream)
            stream.settled = True
            if stream.keeper is not None:
                await stream.settle()
        if type(outcome) is ToolOutcome:
            events = end_event(b'{"ok":true,"output":%s}' % outcome.body)
        elif isinstance(outcome, Failure):
            if outcome.reason is not None:
                events = end_event(dump({"ok": False, "error": outcome.detail, "reason": outcome.reason}))
            elif stream.begun or outcome.kind in _TOLD_IN_STREAM:
                events = error_event(outcome)
                if outcome.kind == "unknown_call" and not stream.begun:
                    await send_whole(request.send, events)
                    return None
            else:
                return failure_reply(outcome)
        else:
            raise TypeError(f"a call came back as {type(outcome).__name__}")
        await stream.finish(events)
        return None

    async def cancel(self, request: Request) -> Reply:
        # ids may be any text, and clients send what is not Latin-1 as UTF-8
        call_id = request.headers.get(b"x-call-id", b"").strip().decode("utf-8", "replace")
        if not call_id:
            raise RequestError("invalid_header", "the header X-Call-ID is required: the task_id of the call to cancel")
        return _document(await self._host.cancel(request.sid, request.principal, call_id))


def _named(request: Request) -> str | None:
    """The environment that the path names, which must be the session's; a bare path fits every session."""
    return request.env if request.env_spelt else None


def _document(outcome: Outcome) -> Reply:
    if isinstance(outcome, Failure):
        return failure_reply(outcome)
    assert isinstance(outcome, Document)
    return json_reply(outcome.body)
