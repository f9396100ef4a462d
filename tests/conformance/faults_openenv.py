"""Small faults of an OpenEnv server: what is changed of a request or an answer, and the row that finds it."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from typing import Any

__all__ = ["FAULTS", "Faulty"]

JSON = [(b"content-type", b"application/json")]


class Faulty:
    """A layer in front of an application that makes one fault: `self.fault`, or none."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.fault: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.fault is None or scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self._socket(scope, receive, send)

    async def _http(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        change = getattr(self.fault, "request", None)
        if change is not None:
            scope, body = change(dict(scope), body)
        given = False

        async def once() -> Any:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        head: dict[str, Any] = {}
        out = b""

        async def caught(message: Any) -> None:
            nonlocal head, out
            if message["type"] == "http.response.start":
                head = message
            else:
                out += message.get("body", b"")

        headers = [h for h in scope["headers"] if h[0] not in (b"content-length", b"accept-encoding")]
        scope = {**scope, "headers": [*headers, (b"content-length", str(len(body)).encode())]}
        await self.app(scope, once, caught)
        status, headers = head["status"], [h for h in head["headers"] if h[0].lower() != b"content-length"]
        answer = getattr(self.fault, "answer", None)
        if answer is not None:
            status, headers, out = answer(self, scope, status, headers, out)
        length = (b"content-length", str(len(out)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": out})

    async def _socket(self, scope: Any, receive: Any, send: Any) -> None:
        say, hear = getattr(self.fault, "message", None), getattr(self.fault, "heard", None)

        async def sent(event: Any) -> None:
            if event["type"] == "websocket.send" and say is not None and event.get("text"):
                for message in say(self, json.loads(event["text"])):
                    if message == "close":
                        await send({"type": "websocket.close", "code": 1011})
                    else:
                        text = message if isinstance(message, str) else json.dumps(message)
                        await send({"type": "websocket.send", "text": text})
            elif event["type"] == "websocket.close" and (code := getattr(self.fault, "code", None)) is not None:
                await send({**event, "code": code})
            else:
                await send(event)

        async def received() -> Any:
            event = await receive()
            if event["type"] == "websocket.receive" and hear is not None and event.get("text"):
                return {**event, "text": hear(event["text"])}
            return event

        change = getattr(self.fault, "opening", None)
        await self.app(change(dict(scope)) if change is not None else scope, received, sent)


FAULTS: list[tuple[str, str, Any]] = []


def fault(row: str, name: str, **changes: Any) -> None:
    FAULTS.append(
        (
            f"OPENENV-{row}",
            name,
            type("Fault", (), {k: staticmethod(v) if callable(v) else v for k, v in changes.items()}),
        )
    )


def told(route: str, change: Callable[[Any], Any]) -> Any:
    """An answer of a route whose JSON is changed."""

    def answer(layer: Faulty, scope: Any, status: int, headers: Any, body: bytes) -> Any:
        if scope["path"].rpartition("/")[2] == route and status == 200:
            body = json.dumps(change(json.loads(body))).encode()
        return status, headers, body

    return answer


def status(route: str, code: int, to: int) -> Any:
    """An answer of a route that has another status."""

    def answer(layer: Faulty, scope: Any, status: int, headers: Any, body: bytes) -> Any:
        if scope["path"].rpartition("/")[2] == route and status == code:
            return (
                to,
                JSON,
                json.dumps(
                    {
                        "observation": {"metadata": {}},
                        "reward": None,
                        "done": False,
                        "tasks": [],
                        "task": {},
                        "num_tasks": 1,
                        "env_name": "x",
                    }
                ).encode(),
            )
        return status, headers, body

    return answer


def sent(route: str, change: Callable[[Any], Any]) -> Any:
    """A request to a route whose JSON is changed before the server sees it."""

    def request(scope: Any, body: bytes) -> Any:
        if scope["path"].rpartition("/")[2] == route:
            try:
                body = json.dumps(change(json.loads(body or b"{}"))).encode()
            except ValueError:
                return scope, b"{}"
        return scope, body

    return request


def said(kind: str, change: Callable[[Any], list[Any]]) -> Any:
    """A message of a kind that is changed."""
    return lambda layer, message: change(message) if message.get("type") == kind else [message]


def code(old: str, new: str) -> Any:
    """An error whose code is another."""

    def change(message: Any) -> list[Any]:
        if message["data"].get("code") == old:
            message["data"]["code"] = new
        return [message]

    return said("error", change)


def with_data(**data: Any) -> Callable[[Any], list[Any]]:
    return lambda message: [{**message, "data": {**message["data"], **data}}]


def observation(**fields: Any) -> Callable[[Any], list[Any]]:
    def change(message: Any) -> list[Any]:
        message["data"]["observation"].update(fields)
        return [message]

    return change


_answers = itertools.count()


def once_more() -> int:
    """A number that no answer had before."""
    return next(_answers)


def hold_up(text: str) -> str:
    """A slow step holds up the whole server."""
    if "slow" in text:
        time.sleep(2.2)
    return text


def lower_only(scope: Any, body: bytes) -> Any:
    """Names are matched as they are written."""
    if "CONFORMANCEPROBE" in scope["path"]:
        path = scope["path"].replace("CONFORMANCEPROBE", "no-such")
        scope |= {"path": path, "raw_path": path.encode()}
    return scope, body


def any_name(scope: Any, body: bytes) -> Any:
    path = scope["path"].replace("no-such-environment", "conformanceprobe")
    return {**scope, "path": path, "raw_path": path.encode()}, body


def untagged(document: Any) -> Any:
    for methods in document["paths"].values():
        for method in methods.values():
            method["tags"] = []
    return document


def typed(name: str, kind: Any) -> Any:
    return lambda splits: [{**split, "type": kind} if split["name"] == name else split for split in splits]


fault("ENV-001", "no environments", answer=told("list_environments", lambda names: {"names": names}))
fault("ENV-002", "case matters", request=lower_only)
fault("ENV-003", "any name will do", request=any_name)
fault("ENV-004", "routes have no tag", answer=told("openapi.json", untagged))
fault("SPLIT-001", "splits in an object", answer=told("splits", lambda splits: {"splits": splits}))
fault("SPLIT-002", "splits are bare names", answer=told("splits", lambda splits: [split["name"] for split in splits]))
fault("SPLIT-003", "test is a validation split", answer=told("splits", typed("test", "validation")))
fault("SPLIT-004", "a name of one's own is its type", answer=told("splits", typed("own", "own")))
fault("SPLIT-005", "a split that is said is changed", answer=told("splits", typed("named", "validation")))
fault(
    "SPLIT-006",
    "each time another split",
    answer=told("splits", lambda s: [*s, {"name": f"s{once_more()}", "type": "test"}]),
)
fault("TASK-001", "no env_name", answer=told("tasks", lambda told: {"tasks": told["tasks"]}))
fault("TASK-002", "the count is text", answer=told("num_tasks", lambda told: {"num_tasks": str(told["num_tasks"])}))
fault("TASK-003", "the task itself", answer=told("task", lambda told: told["task"]))
fault("TASK-004", "past the end is 500", answer=status("task", 400, 500))
fault("TASK-005", "what there is not is 500", answer=status("task", 501, 500))
fault("TASK-006", "split may be missing", request=sent("num_tasks", lambda body: {"split": "train", **body}))
fault("TASK-007", "index may be missing", request=sent("task", lambda body: {"index": 0, **body}))
fault("TASK-008", "unknown keys are ignored", request=sent("num_tasks", lambda body: {"split": body.get("split")}))
fault(
    "TASK-009",
    "a cursor goes on",
    answer=told("task", lambda told: {"task": {**told["task"], "at": once_more()}}),
)
fault("TASK-010", "text is escaped twice", answer=told("task", lambda told: {"task": {**told["task"], "text": "?"}}))
fault("TASK-011", "the count is of the first page", answer=told("num_tasks", lambda told: {"num_tasks": 3}))
fault(
    "TASK-012",
    "asking begins an episode",
    message=said("state", lambda m: with_data(episode_id=str(once_more()))(m)),
)
fault("RANGE-001", "the list itself", answer=told("task_range", lambda told: told["tasks"]))
fault(
    "RANGE-002",
    "stop is inclusive",
    request=sent("task_range", lambda b: {**b, "stop": b["stop"] + 1} if b.get("stop") else b),
)
fault("RANGE-003", "both ends must be there", request=sent("task_range", lambda b: {"start": 0, "stop": 1, **b}))
fault(
    "RANGE-004",
    "past the end nothing",
    request=sent("task_range", lambda b: b if (b.get("stop") or 0) <= 20 else {**b, "stop": 0}),
)
fault("RANGE-005", "split may be missing", request=sent("task_range", lambda body: {"split": "train", **body}))
fault("RANGE-006", "below 0 is 0", request=sent("task_range", lambda b: {**b, "start": max(0, b.get("start") or 0)}))
fault("ABOUT-001", "health is text", answer=told("health", lambda told: "healthy"))
fault("ABOUT-002", "no schema of the state", answer=told("schema", lambda told: {**told, "state": None}))
fault("ABOUT-003", "no name", answer=told("metadata", lambda told: {**told, "name": None}))
fault("EPISODE-001", "no done", answer=told("reset", lambda told: {"observation": told["observation"], "reward": 0}))
fault(
    "EPISODE-002",
    "a body must be there",
    answer=lambda layer, scope, code, headers, body: (
        (422, JSON, b"{}")
        if scope["path"] == "/reset" and dict(scope["headers"])[b"content-length"] == b"0"
        else (code, headers, body)
    ),
)
fault(
    "EPISODE-003",
    "unknown keys are refused",
    answer=lambda layer, scope, code, headers, body: (
        (422, JSON, b"{}")
        if scope["path"] == "/reset" and int(dict(scope["headers"])[b"content-length"]) > 10
        else (code, headers, body)
    ),
)
fault(
    "EPISODE-004",
    "the index does not arrive",
    request=sent("reset", lambda body: {k: v for k, v in body.items() if k != "index"}),
)
fault("EPISODE-005", "any seed", request=sent("reset", lambda body: {}))
fault("EPISODE-006", "any body", request=sent("reset", lambda body: {}))
fault("EPISODE-007", "rewards are rounded", answer=told("step", lambda told: {**told, "reward": 1}))
fault("EPISODE-008", "any action", request=sent("step", lambda body: {"action": {"text": "a"}}))
fault("EPISODE-009", "a failure is a reward of 0", answer=status("step", 500, 200))
fault("EPISODE-010", "no count of steps", answer=told("state", lambda told: {"episode_id": told["episode_id"]}))
fault(
    "EPISODE-011",
    "reward in the observation",
    answer=told("reset", lambda told: {**told, "observation": {**told["observation"], "reward": None}}),
)
fault(
    "EPISODE-012",
    "an episode for each request",
    request=lambda scope, body: ({**scope, "headers": [h for h in scope["headers"] if h[0] != b"x-session-id"]}, body),
)
fault("SOCKET-001", "the observation alone", message=said("observation", lambda m: [m["data"]]))
fault(
    "SOCKET-002",
    "a step is answered by a state",
    message=lambda layer, m: (
        [{**m, "type": "state"}] if m["type"] == "observation" and m["data"]["observation"].get("count") else [m]
    ),
)
fault("SOCKET-003", "no count of steps", message=said("state", lambda m: [{**m, "data": {"episode_id": "a"}}]))
fault("SOCKET-004", "closed in another way", code=1011)
fault("SOCKET-005", "an answer twice", message=lambda layer, m: [m, m])
fault(
    "SOCKET-006",
    "no metadata in it",
    message=said(
        "observation",
        lambda m: [
            {
                **m,
                "data": {
                    **m["data"],
                    "observation": {k: v for k, v in m["data"]["observation"].items() if k != "metadata"},
                },
            }
        ],
    ),
)
fault("SOCKET-007", "the split does not arrive", heard=lambda text: text.replace('"split"', '"spilt"'))
fault("SOCKET-008", "steps are not counted", message=said("observation", observation(count=1)))
fault(
    "SOCKET-009",
    "true is 1.0",
    message=said(
        "observation", lambda m: with_data(reward=float(m["data"]["reward"]))(m) if m["data"]["reward"] is True else [m]
    ),
)
fault("SOCKET-010", "one episode for all", message=said("state", with_data(episode_id="one")))
fault("SOCKET-011", "one after another", heard=hold_up)
fault("REFUSAL-001", "another code for noise", message=code("INVALID_JSON", "SESSION_ERROR"))
fault("REFUSAL-002", "another code for types", message=code("UNKNOWN_TYPE", "VALIDATION_ERROR"))
fault("REFUSAL-003", "no list of errors", message=said("error", with_data(errors=None)))
fault("REFUSAL-004", "keys are ignored", heard=lambda text: text.replace(', "no_such_key": 1', ""))
fault(
    "REFUSAL-005",
    "a bad action ends the session",
    message=lambda layer, m: [m, "close"] if m["type"] == "error" else [m],
)
fault("REFUSAL-006", "errors say nothing", message=said("error", with_data(message="internal error")))
fault("REFUSAL-007", "an unknown session is a new one", opening=lambda scope: {**scope, "query_string": b""})
fault(
    "REFUSAL-008",
    "texts are cut",
    message=said("observation", lambda m: observation(text=m["data"]["observation"].get("text", "")[:60000])(m)),
)
fault("RPC-001", "no id", answer=told("mcp", lambda told: {**told, "id": None}))
fault(
    "RPC-002",
    "unknown methods fail",
    answer=told("mcp", lambda told: {**told, "error": {"code": -32603}} if told.get("error") else told),
)
fault(
    "RPC-003",
    "noise is another error",
    answer=told("mcp", lambda told: {**told, "error": {"code": -32600}} if told.get("error") else told),
)
fault("RPC-004", "any version", request=sent("mcp", lambda body: {**body, "jsonrpc": "2.0"}))
fault(
    "RPC-005",
    "closing does nothing",
    answer=told(
        "mcp",
        lambda told: (
            {**told, "result": {**told["result"], "closed": False}}
            if (told.get("result") or {}).get("closed")
            else told
        ),
    ),
)
fault("RPC-006", "sockets are new sessions", opening=lambda scope: {**scope, "query_string": b"session_id=other"})
fault("RPC-007", "the answer alone", message=said("mcp", lambda m: [m["data"]]))
fault("RPC-008", "no socket at /mcp", opening=lambda scope: {**scope, "path": "/nothing", "raw_path": b"/nothing"})
