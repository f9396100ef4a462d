"""OpenEnv's routes: episodes over a socket and over plain HTTP, schemas, metadata, and tools by JSON-RPC."""

from __future__ import annotations

from typing import Any

from ors.core.failures import Failure
from ors.core.ports import Host, Op, Start, StepOutcome, TaskQuery
from ors.faces.bodies import read_body, telling
from ors.faces.http import Handler, Reply, Request, Route, failure_reply, json_reply
from ors.faces.openenv.answers import encode, notice, outcome_reply
from ors.faces.openenv.episodes import Episodes, Said
from ors.faces.openenv.jsonrpc import JSONRPC
from ors.faces.openenv.messages import JSONRPCRequest, ResetRequest, StepRequest
from ors.faces.openenv.rpc_talk import RPCTalk
from ors.faces.openenv.sessions import FaceOptions, Sessions
from ors.faces.openenv.starts import start_of
from ors.faces.openenv.talk import SessionTalk
from ors.faces.sockets import SocketRoute

__all__ = ["OpenEnvFace"]

_LOST = ("draining", "tool_hung", "loop_blocked", "worker_lost", "worker_unavailable")
_OPENS = ("too_many_sessions", "setup_failed", "setup_timeout", "too_many_calls", *_LOST)
_NAMED = ("unknown_session", "session_ended", "forbidden", "wrong_environment", "not_supported")
_PLAYS = (*_OPENS, *_NAMED, "tool_failed", "tool_timeout", "bad_output")
_OBSERVED = {
    "type": "object",
    "properties": {
        "observation": {"type": "object"},
        "reward": {"type": ["number", "null"]},
        "done": {"type": "boolean"},
        "metadata": {"type": ["object", "null"]},
    },
    "required": ["observation", "reward", "done", "metadata"],
}
_SCHEMAS = {
    "type": "object",
    "properties": {name: {"type": "object"} for name in ("action", "observation", "state", "reset_observation")},
    "required": ["action", "observation", "state"],
}
_METADATA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "description": {"type": "string"}},
    "required": ["name", "description"],
}
_RESPONSE = {
    "type": "object",
    "properties": {"jsonrpc": {"const": "2.0"}, "id": {"type": ["string", "integer", "null"]}},
    "required": ["jsonrpc", "id"],
}


class OpenEnvFace:
    """OpenEnv over a host."""

    def __init__(self, host: Host, options: FaceOptions | None = None) -> None:
        self._host = host
        self.options = options or FaceOptions()
        self.sessions = Sessions(host, self.options)
        self._episodes = Episodes(self.sessions)
        self._rpc = JSONRPC(self.sessions)

    def routes(self) -> list[Route]:
        """The table of HTTP routes. In production trainers' routes are not there."""
        table = [
            _route("GET", "/schema", self.schema, "Get the schemas of actions, observations and states", _SCHEMAS),
            _route(
                "GET", "/metadata", self.metadata, "Get what the environment says of itself", _METADATA, "task_failed"
            ),
            _route("POST", "/mcp", self.mcp, "List and call tools by JSON-RPC", _RESPONSE, body=JSONRPCRequest),
        ]
        if self.options.mode == "production":
            return table
        return [
            *table,
            _route(
                "POST",
                "/reset",
                self.reset,
                "Begin an episode",
                _OBSERVED,
                *(*_PLAYS, "unknown_split", "invalid_index", "bad_task", "task_failed"),
                body=ResetRequest,
                optional=True,
            ),
            _route("POST", "/step", self.step, "Act", _OBSERVED, *_PLAYS, "not_reset", body=StepRequest),
            _route("GET", "/state", self.state, "Get the state", {"type": "object"}, *_PLAYS),
        ]

    def sockets(self) -> list[SocketRoute]:
        """The table of WebSocket routes."""
        return [
            SocketRoute("/ws", lambda request, line: SessionTalk(self.sessions, self._rpc, request, line), "Episodes"),
            SocketRoute("/mcp", lambda request, line: RPCTalk(self.sessions, self._rpc, request, line), "JSON-RPC"),
        ]

    async def schema(self, request: Request) -> Reply:
        return json_reply(self.sessions.spec(request.env or "").schemas)

    async def metadata(self, request: Request) -> Reply:
        said = await self._host.task(request.env or "", TaskQuery("metadata"))
        return failure_reply(said) if isinstance(said, Failure) else json_reply(said.body)

    async def mcp(self, request: Request) -> Reply:
        text = await request.body()
        return json_reply(encode(await self._rpc.respond_text(text, request.env or "", request.principal)))

    async def reset(self, request: Request) -> Reply:
        body = await read_body(request, ResetRequest, optional=True)
        data = body.model_dump(exclude_unset=True)
        begun = start_of(self.sessions.spec(request.env or ""), data, self.options.strict_reset)
        if isinstance(begun, Failure):
            return outcome_reply(begun, [])
        start, notes = begun
        said = await self._episodes.reset(request, Op("reset", start=start, env=_named(request)), body.episode_id)
        return self._answer(said, notes)

    async def step(self, request: Request) -> Reply:
        body = await read_body(request, StepRequest)
        options = {**(body.model_extra or {})}
        episode = options.get("episode_id")
        if body.request_id is not None:
            options["request_id"] = body.request_id
        op = Op(
            "step",
            input=body.action,
            timeout_s=body.timeout_s,
            start=Start(options=options) if options else None,
            env=_named(request),
        )
        return self._answer(await self._episodes.use(request, op, episode if isinstance(episode, str) else None))

    async def state(self, request: Request) -> Reply:
        op = Op("state", env=_named(request))
        return self._answer(await self._episodes.use(request, op, self._episodes.episode_in_query(request)))

    def _answer(self, said: Said, notes: dict[str, Any] | None = None) -> Reply:
        outcome, sayings, sid = said
        if isinstance(outcome, StepOutcome) and (notes := outcome.notes or notes):
            dropped = ", ".join(str(key)[:100] for key in notes.get("dropped", ())[:20])
            sayings = [f"left out: {dropped}; reset() takes {', '.join(notes.get('accepted', ()))}", *sayings]
        headers = notice(*sayings)
        if sid is not None:
            headers += [(b"x-session-id", sid.encode("latin-1", "replace")), *self._episodes.cookie(sid)]
        return outcome_reply(outcome, headers)


def _named(request: Request) -> str | None:
    """The environment that the path names, which must be the session's; a bare path fits every session."""
    return request.env if request.env_spelt else None


def _route(method: Any, path: str, handler: Handler, summary: str, answer: Any, *kinds: str, **more: Any) -> Route:
    return Route(method, path, telling(handler), summary, "env", answer=answer, kinds=kinds, tag="OpenEnv", **more)
