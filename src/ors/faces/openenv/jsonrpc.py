"""OpenEnv's JSON-RPC: `POST /mcp`, the socket `/mcp`, and `type: "mcp"` on `/ws`.

A tool is called by a step, so that it counts, and its reward and whether the episode is over are in the result's
`meta`. Without a session each request has an environment of its own, made and closed for it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from ors.core.failures import Failure
from ors.core.ports import Op, Principal
from ors.core.secrets import mask
from ors.errors import describe_errors
from ors.faces.bodies import InvalidBodyError, read_text
from ors.faces.openenv.messages import JSONRPCRequest
from ors.faces.openenv.sessions import Sessions

__all__ = ["JSONRPC", "failed_response"]

logger = logging.getLogger("ors.server")

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000

_NO_SESSION = frozenset(["unknown_session", "session_ended", "forbidden", "wrong_environment"])
_TOOL = ("title", "outputSchema", "icons", "annotations", "meta", "execution")


class _RPCError(Exception):
    """What a request is answered in place of a result."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class JSONRPC:
    """Answers requests."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def respond_text(
        self, text: str | bytes, env: str, principal: Principal, *, own: str | None = None
    ) -> dict[str, Any]:
        """The response to a text."""
        try:
            value = read_text(text)
        except InvalidBodyError:
            return _error(None, _RPCError(PARSE_ERROR, "Parse error"))
        if not isinstance(value, dict):
            return _error(None, _RPCError(PARSE_ERROR, "Parse error"))
        return await self.respond(value, env, principal, own=own)

    async def respond(
        self, value: Mapping[str, Any], env: str, principal: Principal, *, own: str | None = None
    ) -> dict[str, Any]:
        """The response to a request. own: the session of the socket that it came over."""
        try:
            request = JSONRPCRequest.model_validate(value)
        except ValidationError as exc:
            return _error(None, _RPCError(INVALID_REQUEST, f"Invalid request: {describe_errors(exc)}"))
        try:
            result = await self._result(request, env, principal, own)
        except _RPCError as exc:
            return _error(request.id, exc)
        except Exception as exc:
            logger.exception("answering %s failed", request.method)
            return _error(request.id, _RPCError(INTERNAL_ERROR, f"the server failed: {type(exc).__name__}"))
        return {"jsonrpc": "2.0", "id": request.id, "result": result}

    async def _result(self, request: JSONRPCRequest, env: str, principal: Principal, own: str | None) -> Any:
        match request.method:
            case "tools/list":
                return await self._list(request.params, env, principal, own)
            case "tools/call":
                return await self._call(request.params, env, principal, own)
            case "openenv/session/create":
                return await self._create(env, principal, own)
            case "openenv/session/close":
                return await self._close(request.params, principal, own)
            case method:
                raise _RPCError(METHOD_NOT_FOUND, f"Method not found: {method}")

    # Tools

    async def _list(self, params: dict[str, Any], env: str, principal: Principal, own: str | None) -> Any:
        if self._sessions.spec(env).tool_actions == "mcp":
            told = await self._ask(Op("own_tools"), params, env, principal, own)
            return {"tools": [_as_mcp_has_it(tool) for tool in json.loads(told.body)]}
        outcome = await self._ask(Op("step", input={"type": "list_tools"}), params, env, principal, own)
        tools = outcome.observation.get("tools") if isinstance(outcome.observation, dict) else None
        if not isinstance(tools, list):
            raise _RPCError(INTERNAL_ERROR, "MCP-style tools/list step returned no list of tools")
        return {"tools": tools}

    async def _call(self, params: dict[str, Any], env: str, principal: Principal, own: str | None) -> Any:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not name or not isinstance(name, str):
            raise _RPCError(INVALID_PARAMS, "Missing 'name' in params")
        if not isinstance(arguments, dict):
            raise _RPCError(INVALID_PARAMS, "'arguments' must be an object")
        action = {"type": "call_tool", "tool_name": name, "arguments": arguments}
        outcome = await self._ask(Op("step", input=action), params, env, principal, own)
        seen = outcome.observation if isinstance(outcome.observation, dict) else {"result": outcome.observation}
        if self._sessions.spec(env).tool_actions == "plain":
            return {"done": outcome.done, "reward": outcome.reward, "metadata": outcome.metadata or {}, **seen}
        error = seen.get("error")
        if error:
            words = error.get("message", "it failed") if isinstance(error, dict) else str(error)
            raise _RPCError(INTERNAL_ERROR, mask(words))
        result = seen.get("result")
        if not isinstance(result, dict) or "content" not in result:
            text = result if isinstance(result, str) else ""
            content = [{"type": "text", "text": text}] if text else []
            result = {"content": content, "structured_content": None, "data": result, "is_error": False}
        meta = {**(result.get("meta") or {}), "reward": outcome.reward, "done": outcome.done}
        return {**result, "meta": meta}

    async def _ask(self, op: Op, params: dict[str, Any], env: str, principal: Principal, own: str | None) -> Any:
        """Ask something of the session that is meant, or of one that is made for it."""
        sessions = self._sessions
        named = own or params.get("session_id")
        if sessions.spec(env).tool_actions == "none":
            if named and await sessions.host.touch(str(named), principal) is not None:
                raise _RPCError(INVALID_PARAMS, f"Unknown session_id: {named}")
            raise _RPCError(INTERNAL_ERROR, "Environment does not support MCP")
        if named:
            sid = str(named)
            outcome = await sessions.host.perform(sid, principal, op if own else msgspec.structs.replace(op, env=env))
        else:
            sid = sessions.new_id()
            failed = await sessions.open(env, principal, sid, lazy=True)
            if failed is not None:
                raise _refusal(failed)
            try:
                outcome = await sessions.host.perform(sid, principal, op)
            finally:
                sessions.end(sid, principal, "answered")
        if isinstance(outcome, Failure):
            if outcome.kind in _NO_SESSION:
                raise _RPCError(INVALID_PARAMS, f"Unknown session_id: {sid}")
            raise _refusal(outcome)
        return outcome

    # Sessions

    async def _create(self, env: str, principal: Principal, own: str | None) -> Any:
        if own is not None:
            return {"session_id": own}
        sid = self._sessions.new_id()
        failed = await self._sessions.open(env, principal, sid, lazy=False)
        if failed is not None:
            raise _refusal(failed)
        return {"session_id": sid}

    async def _close(self, params: dict[str, Any], principal: Principal, own: str | None) -> Any:
        sid = params.get("session_id")
        if not sid or not isinstance(sid, str):
            raise _RPCError(INVALID_PARAMS, "Invalid params - 'session_id' is required")
        if sid == own:
            raise _RPCError(INVALID_REQUEST, "Cannot close active WebSocket-managed session via MCP method")
        sessions = self._sessions
        there = await sessions.host.touch(sid, principal)
        if there is not None and there.kind != "setup_failed":
            raise _RPCError(INVALID_PARAMS, f"Unknown session_id: {sid}")
        if sid in sessions.attached:
            sessions.pending_close.add(sid)
            return {"session_id": sid, "closed": False, "closing": True}
        sessions.take(sid)
        await sessions.end(sid, principal, "closed")
        return {"session_id": sid, "closed": True}


def failed_response(failed: Failure) -> dict[str, Any]:
    """What a client is told that has asked for nothing yet."""
    return _error(None, _refusal(failed))


def _refusal(failed: Failure) -> _RPCError:
    about = dict(failed.about or {})
    if failed.retry_after is not None:
        about["retry_after"] = failed.retry_after
    if failed.kind in ("too_many_sessions", "setup_failed", "setup_timeout"):
        return _RPCError(SERVER_ERROR, mask(failed.detail), about or None)
    return _RPCError(INTERNAL_ERROR, mask(failed.detail), about or None)


def _error(id: Any, error: _RPCError) -> dict[str, Any]:
    said = {"code": error.code, "message": error.message, "data": error.data}
    return {"jsonrpc": "2.0", "id": id, "error": said}


def _as_mcp_has_it(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool in the form of MCP's own list."""
    listed: dict[str, Any] = {"name": tool.get("name"), "title": None, "description": tool.get("description")}
    listed["inputSchema"] = tool.get("input_schema", tool.get("inputSchema", {}))
    return listed | {key: tool.get(key) for key in _TOOL if key != "title"}
