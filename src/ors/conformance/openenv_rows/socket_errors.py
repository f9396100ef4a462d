"""What a socket answers to what it does not take: an `error` with its code, and it stays open."""

from __future__ import annotations

from typing import Any

from ors.conformance.judging import NotApplicable
from ors.conformance.openenv_place import OpenEnvPlace as Place
from ors.conformance.openenv_rows.sockets import RESET, observed
from ors.conformance.table import Area
from ors.conformance.websocket import Socket

REFUSAL = Area("OPENENV", "REFUSAL")
row = REFUSAL.row

DOC = "openenv"


async def _refuses(socket: Socket, message: Any, *codes: str) -> dict[str, Any]:
    answer = await socket.ask(message)
    data = answer.get("data")
    if answer.get("type") != "error" or not isinstance(data, dict):
        raise socket.failed(f"this is no error: {str(answer)[:200]}")
    if data.get("code") not in codes:
        raise socket.failed(f"the code is {str(data.get('code'))[:60]!r}, not {' or '.join(codes)}")
    if not isinstance(data.get("message"), str):
        raise socket.failed("the error has no `message`")
    return data


async def _goes_on(socket: Socket) -> None:
    observed(socket, await socket.ask(RESET))


@row("must", DOC, "WS /ws", "what is no JSON is an error with the code `INVALID_JSON`, and the session goes on")
async def _refusal_001(at: Place) -> None:
    async with at.socket() as socket:
        await _refuses(socket, "{nonsense", "INVALID_JSON")
        await _goes_on(socket)


@row("must", DOC, "WS /ws", "an unknown or missing `type` is an error with the code `UNKNOWN_TYPE`")
async def _refusal_002(at: Place) -> None:
    async with at.socket() as socket:
        await _refuses(socket, {"type": "no_such_type"}, "UNKNOWN_TYPE")
        await _refuses(socket, {"data": {}}, "UNKNOWN_TYPE")
        await _goes_on(socket)


@row("must", DOC, "WS /ws", "a message without what it needs is an error with the code `VALIDATION_ERROR` and `errors`")
async def _refusal_003(at: Place) -> None:
    async with at.socket() as socket:
        data = await _refuses(socket, {"type": "step"}, "VALIDATION_ERROR")
        if not isinstance(data.get("errors"), list) or not data["errors"]:
            raise socket.failed("`errors` is no list of what is wrong")
        await _refuses(socket, {"type": "reset", "data": None}, "VALIDATION_ERROR")
        await _refuses(socket, {"type": "reset", "data": [1]}, "VALIDATION_ERROR")
        await _goes_on(socket)


@row("must", DOC, "WS /ws", "a key that a message does not have is an error with the code `VALIDATION_ERROR`")
async def _refusal_004(at: Place) -> None:
    async with at.socket() as socket:
        await _refuses(socket, {"type": "state", "no_such_key": 1}, "VALIDATION_ERROR")
        await _goes_on(socket)


@row("must", DOC, "WS /ws", "an action that the schema refuses is an error, and the session goes on", probe=True)
async def _refusal_005(at: Place) -> None:
    async with at.socket() as socket:
        await socket.ask(RESET)
        bad = {"type": "step", "data": {"text": "a", "wait_s": "long"}}
        await _refuses(socket, bad, "VALIDATION_ERROR", "EXECUTION_ERROR")
        step = await socket.ask({"type": "step", "data": {"text": "a"}})
        count = observed(socket, step)["observation"].get("count")
        if count != 1:
            raise socket.failed(f"the step after it is number {count}, not 1")


@row("must", DOC, "WS /ws", "a step that raises is an error with the code `EXECUTION_ERROR`, and goes on", probe=True)
async def _refusal_006(at: Place) -> None:
    async with at.socket() as socket:
        await socket.ask(RESET)
        bad = {"type": "step", "data": {"text": "a", "fail": True}}
        data = await _refuses(socket, bad, "EXECUTION_ERROR")
        if "failed on purpose" not in data["message"]:
            raise socket.failed("the message does not say what the environment said")
        observed(socket, await socket.ask({"type": "step", "data": {"text": "a"}}))


@row("must", DOC, "WS /ws", "an unknown `session_id` is an error with the code `SESSION_ERROR`, and the socket ends")
async def _refusal_007(at: Place) -> None:
    async with at.socket("?session_id=no-such-session") as socket:
        answer = await socket.hear()
        data = answer.get("data")
        if answer.get("type") != "error" or not isinstance(data, dict) or data.get("code") != "SESSION_ERROR":
            raise socket.failed(f"this is no error with the code SESSION_ERROR: {str(answer)[:200]}")
        await socket.ended()


@row("must", DOC, "WS /ws", "a large message comes whole: 1 MiB", probe=True)
async def _refusal_008(at: Place) -> None:
    async with at.socket() as socket:
        await socket.ask(RESET)
        text = "é" * 2**19
        step = observed(socket, await socket.ask({"type": "step", "data": {"text": text}}))
        if step["observation"].get("text") != text:
            raise socket.failed("the text came as another")


@row("should", DOC, "WS /ws", "sessions are refused in words when there are too many: `CAPACITY_REACHED`, then the end")
async def _refusal_009(at: Place) -> None:
    async with at.socket() as one, at.socket() as other:
        await one.ask(RESET)
        answer = await other.ask(RESET)
        data = answer.get("data")
        if answer.get("type") == "observation":
            raise NotApplicable("the server takes more than one session")
        if not isinstance(data, dict) or data.get("code") != "CAPACITY_REACHED":
            raise other.failed(f"this is no error with the code CAPACITY_REACHED: {str(answer)[:200]}")
        if not isinstance(data.get("max_sessions"), int):
            raise other.failed("the error does not say how many there may be: `max_sessions`")
