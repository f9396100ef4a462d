"""JSON-RPC at `/mcp`, over HTTP and in a session."""

from __future__ import annotations

from typing import Any

from ors.conformance.judging import NotApplicable, object_of, require
from ors.conformance.openenv_place import OpenEnvPlace as Place
from ors.conformance.openenv_rows.sockets import RESET, observed
from ors.conformance.table import Area
from ors.conformance.wire import Answer

RPC = Area("OPENENV", "RPC")
row = RPC.row

DOC = "openenv"
SECTION = "POST /mcp"


def _result(answer: Answer, id: Any = 1) -> dict[str, Any]:
    body = object_of(answer, "jsonrpc")
    require(body["jsonrpc"] == "2.0", f"`jsonrpc` is {str(body['jsonrpc'])[:40]!r}", answer)
    require(body.get("id") == id, f"`id` is {str(body.get('id'))[:40]!r}, not {id!r}", answer)
    one = ("result" in body) != (body.get("error") is not None)
    require(one, "it has neither `result` nor `error`, or both", answer)
    return body


def _error(answer: Answer, code: int, id: Any = 1) -> None:
    error = _result(answer, id).get("error")
    found = error.get("code") if isinstance(error, dict) else None
    require(found == code, f"the code is {found}, not {code}", answer)


@row("must", DOC, SECTION, "a request is answered with 200, its `id`, and either `result` or `error`")
async def _rpc_001(at: Place) -> None:
    for id in (1, "one"):
        _result(await at.rpc("tools/list", id=id), id)


@row("must", DOC, SECTION, "an unknown method is the error -32601")
async def _rpc_002(at: Place) -> None:
    _error(await at.rpc("no/such/method"), -32601)


@row("must", DOC, SECTION, "what is no JSON is the error -32700")
async def _rpc_003(at: Place) -> None:
    _error(await at.root_post("mcp", raw=b"{nonsense"), -32700, None)


@row("must", DOC, SECTION, "what is no request of JSON-RPC is the error -32600")
async def _rpc_004(at: Place) -> None:
    answer = await at.root_post("mcp", {"jsonrpc": "1.0", "method": "tools/list", "id": 1})
    error = object_of(answer).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    require(code == -32600, f"the code is {code}, not -32600", answer)


@row("must", DOC, "openenv/session/create", "a session that was created is closed once, and is then unknown")
async def _rpc_005(at: Place) -> None:
    sid = await _created(at)
    closed = _result(await at.rpc("openenv/session/close", {"session_id": sid})).get("result")
    answer = await at.rpc("openenv/session/close", {"session_id": sid})
    whole = isinstance(closed, dict) and closed.get("session_id") == sid and closed.get("closed") is True
    require(whole, f"closing it says {str(closed)[:100]}", answer)
    _error(answer, -32602)


@row("must", DOC, "openenv/session/create", "a socket with its `session_id` is that session")
async def _rpc_006(at: Place) -> None:
    sid = await _created(at)
    try:
        async with at.socket(f"?session_id={sid}") as socket:
            observed(socket, await socket.ask(RESET))
            await socket.say({"type": "close"})
            await socket.ended()
    finally:
        await at.rpc("openenv/session/close", {"session_id": sid})


@row("must", DOC, "WS /ws", "a message `mcp` is answered by the answer of JSON-RPC")
async def _rpc_007(at: Place) -> None:
    async with at.socket() as socket:
        data = {"jsonrpc": "2.0", "method": "no/such/method", "params": {}, "id": "a"}
        message = await socket.ask({"type": "mcp", "data": data})
        told = message.get("data")
        error = told.get("error") if isinstance(told, dict) else None
        if message.get("type") != "mcp" or not isinstance(told, dict) or told.get("id") != "a":
            raise socket.failed(f"this is no answer of JSON-RPC: {str(message)[:200]}")
        if not isinstance(error, dict) or error.get("code") != -32601:
            raise socket.failed("an unknown method is not the error -32601")


@row("must", DOC, "WS /mcp", "`/mcp` is a socket too")
async def _rpc_008(at: Place) -> None:
    async with at.socket(route="mcp") as socket:
        message = await socket.ask({"jsonrpc": "2.0", "method": "no/such/method", "params": {}, "id": 7})
        error = message.get("error")
        if message.get("id") != 7 or not isinstance(error, dict) or error.get("code") != -32601:
            raise socket.failed(f"an unknown method is not the error -32601: {str(message)[:200]}")


async def _created(at: Place) -> str:
    answer = await at.rpc("openenv/session/create")
    body = _result(answer)
    error = body.get("error")
    if isinstance(error, dict) and error.get("code") == -32000:
        raise NotApplicable("the server has no room for a session")
    result = body.get("result")
    sid = result.get("session_id") if isinstance(result, dict) else None
    require(isinstance(sid, str) and sid, "it gives no `session_id`", answer)
    return str(sid)
