"""The OpenAPI 3.1 document, built from the table of routes that also drives dispatch: it cannot say what is not there.

A route of an environment is described in both spellings: with the environment's name, and bare for the first one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ors._version import __version__
from ors.core.failures import KINDS
from ors.core.ports import OfferingSpec
from ors.faces.http import Route
from ors.faces.openenv import OpenEnvFace
from ors.faces.ors import ORSFace
from ors.faces.tasks import TaskFace
from ors.jsontext import dump
from ors.schema import json_schema
from ors.server.system import SystemFace

__all__ = ["document", "static_document"]

_SCHEMAS = "#/components/schemas/"
_ABOUT = (
    "Environments for reinforcement learning of language models, over the Open Reward Standard. Every error is "
    "`{detail, kind, retryable}`; a route that is asked with another method answers 405 `method_not_allowed` and names "
    "the right one in `Allow`, a path that is not listed here 404 `not_found`."
)
_TAGS = {
    "Environments": "What the server offers. The first environment also answers without its name in the path.",
    "Task API": "The tasks of an environment. Nothing here starts an episode.",
    "Sessions": "An episode from its creation to its end. `X-Session-ID` says which one.",
    "OpenEnv": "Episodes of steps, for OpenEnv's clients. The WebSockets `/ws` and `/mcp` cannot be described here.",
    "Server": "The server itself.",
}
_HEADERS: dict[str, dict[str, Any]] = {
    "X-Session-ID": {
        "required": True,
        "description": "The session: an id from `/create_session`, or any other text that is unique.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 512, "pattern": r"^[!-~]+$"},
    },
    "X-Secrets": {
        "description": 'Secrets for the environment: base64 of `{name: {"value": text}}`. The body\'s `secrets` win.',
        "schema": {"type": "string", "contentEncoding": "base64", "contentMediaType": "application/json"},
    },
    "Idempotency-Key": {
        "description": "The same key with the same body again joins the first request instead of failing.",
        "schema": {"type": "string", "maxLength": 512, "pattern": r"^[!-~]*$"},
    },
    "X-Call-ID": {
        "required": True,
        "description": "The `task_id` of the call to cancel.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[!-~]+$"},
    },
    "If-None-Match": {
        "description": "The `ETag` of an earlier answer: while the answer is the same, its status is 304.",
        "schema": {"type": "string", "maxLength": 512, "pattern": r"^[!-~]*$"},
    },
}
_ERROR = {
    "description": "What failed: words for people, a kind for programs, and whether asking again later can help.",
    "type": "object",
    "properties": {
        "detail": {
            "description": "Words; for a body that does not fit, on OpenEnv's routes, a list of its faults.",
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
        },
        "kind": {"type": "string"},
        "retryable": {"type": "boolean"},
    },
    "required": ["detail", "kind", "retryable"],
}
_TOOLS = {
    "description": "The tools, the one that takes the agent's final message, and what blocks a message may hold.",
    "type": "object",
    "properties": {
        "tools": {"type": "array", "items": {"$ref": f"{_SCHEMAS}ToolSpec"}},
        "terminal_tool": {"anyOf": [{"$ref": f"{_SCHEMAS}TerminalToolSpec"}, {"type": "null"}]},
        "supports_score_group": {"type": "boolean"},
        "message_block_types": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["tools", "terminal_tool", "supports_score_group", "message_block_types"],
}
_EXAMPLES: dict[str, Any] = {
    "ListTasks": {"split": "train"},
    "NumTasks": {"split": "train"},
    "GetTask": {"split": "train", "index": 0},
    "GetTaskRange": {"split": "train", "start": 0, "stop": 10},
    "CreateSession": {"split": "train", "index": 0},
    "ToolCall": {"name": "submit", "input": {"answer": "42"}},
    "ResetRequest": {"seed": 42, "episode_id": "episode-1"},
    "StepRequest": {"action": {"type": "call_tool", "tool_name": "submit", "arguments": {"answer": "42"}}},
    "JSONRPCRequest": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
}


def document(routes: Sequence[Route], specs: Mapping[str, OfferingSpec], has_keys: bool) -> bytes:
    """Describe a table of routes as JSON. `specs`: the environments by name, the first being the default."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        for path in [f"/{{env_name}}{route.path}", route.path] if route.scope == "env" else [route.path]:
            paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, specs, has_keys)
    used = {route.tag for route in routes}
    whole: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "ORS Kit",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": tag, "description": text} for tag, text in _TAGS.items() if tag in used],
        "paths": paths,
        "components": {"schemas": _components(routes)},
    }
    if has_keys:
        whole["components"]["securitySchemes"] = {
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        whole["security"] = [{"key": []}, {"bearer": []}]
    return dump(whole)


def static_document() -> bytes:
    """Describe what every server answers, whatever its environments: as one that asks for keys."""
    host: Any = None
    faces = (SystemFace(host, bytes), ORSFace(host), TaskFace(host), OpenEnvFace(host))
    return document([route for face in faces for route in face.routes()], {}, has_keys=True)


def _operation(route: Route, path: str, specs: Mapping[str, OfferingSpec], has_keys: bool) -> dict[str, Any]:
    named = path.startswith("/{env_name}")
    words = re.sub(r"\W+", "_", route.path).strip("_")
    described: dict[str, Any] = {
        "tags": [route.tag],
        "summary": route.summary,
        "operationId": f"{words}_bare" if route.scope == "env" and not named else words,
    }
    if route.scope == "env" and not named:
        whose = "Of any session's environment." if route.session else "Of the first environment."
        described["description"] = f"{whose} The same as `/{{env_name}}{route.path}`."
    elif route.stream and isinstance(route.answer, dict):
        described["description"] = "With `Accept: text/event-stream` the answer is events."
    if parameters := [*_path_parameters(path, specs), *_header_parameters(route)]:
        described["parameters"] = parameters
    if route.body is not None:
        media: dict[str, Any] = {"schema": {"$ref": f"{_SCHEMAS}{route.body.__name__}"}}
        if (example := _EXAMPLES.get(route.body.__name__)) is not None:
            media["example"] = example
        described["requestBody"] = {"required": not route.optional, "content": {"application/json": media}}
    described["responses"] = {"200": _success(route), **_failures(_kinds(route, path, has_keys))}
    if "If-None-Match" in route.headers:
        described["responses"]["304"] = {"description": "The answer is still the one of `If-None-Match`"}
    if has_keys and route.open:
        described["security"] = []
    return described


def _path_parameters(path: str, specs: Mapping[str, OfferingSpec]) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", path):
        schema: dict[str, Any] = {"type": "string", "minLength": 1}
        parameter = {"name": name, "in": "path", "required": True, "schema": schema}
        if name == "env_name":
            parameter["description"] = "The environment; upper and lower case are the same."
            if specs:
                schema["enum"] = list(specs)
        yield parameter


def _header_parameters(route: Route) -> Iterable[dict[str, Any]]:
    names = ["X-Session-ID"] if route.session else []
    for name in (*names, *route.headers):
        yield {"name": name, "in": "header", **_HEADERS[name]}


def _success(route: Route) -> dict[str, Any]:
    if route.answer == "html":
        return {"description": "A page", "content": {"text/html": {"schema": {"type": "string"}}}}
    schema = _schema(route.answer)
    content: dict[str, Any] = {}
    if not route.stream or isinstance(route.answer, dict):
        content["application/json"] = {"schema": schema}
    if route.stream:
        events = _id_events() if isinstance(route.answer, dict) else _call_events(schema)
        words = " ".join(f"`{name}`: {event['description']}" for name, event in events.items())
        stream = {"type": "string", "description": f"Server-sent events. {words}"}
        content["text/event-stream"] = {"schema": stream, "x-events": events}
    return {"description": "The answer", "content": content}


def _id_events() -> dict[str, Any]:
    return {
        "task_id": {"description": "First: the id."},
        "end": {"description": "Empty; the stream is over."},
    }


def _call_events(schema: Any) -> dict[str, Any]:
    return {
        "task_id": {
            "description": "First: the id by which this call's answer can be fetched again, as `task_id` in the body. "
            "Comment lines follow at least every 10 seconds while the call runs."
        },
        "chunk": {"description": "A piece of a long result. The pieces and the `end` join to one JSON text."},
        "end": {"description": "The result, or its last piece; the stream is over.", "schema": schema},
        "error": {
            "description": "In place of `end`: the call broke, and why. The comment line before it, "
            "`: failure {kind, retryable, ran}`, is for programs."
        },
    }


def _schema(answer: Any) -> Any:
    """What a route says of its answer, with names of types as references."""
    if isinstance(answer, str):
        return {"$ref": f"{_SCHEMAS}{answer}"}
    if isinstance(answer, dict):
        return {**answer, "items": _schema(answer["items"])} if isinstance(answer.get("items"), str) else answer
    return {}


def _kinds(route: Route, path: str, has_keys: bool) -> list[str]:
    """Every way in which a route can fail: its own, and what comes before its handler."""
    named = path.startswith("/{env_name}")
    kinds = [*route.kinds, "foreign_origin", "internal"]
    if has_keys and not route.open:
        kinds.append("unauthorized")
    if route.session:
        kinds += ["missing_session_id", "invalid_header"]
    if route.headers:
        kinds.append("invalid_header")
    if route.body is not None:
        kinds += ["invalid_json", "invalid_request", "unsupported_media_type", "body_too_large"]
    if route.scope == "env":
        if named:
            kinds.append("unknown_environment")
        else:
            kinds = [kind for kind in kinds if kind not in ("unknown_environment", "wrong_environment")]
    return list(dict.fromkeys(kinds))


def _failures(kinds: Sequence[str]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for kind in kinds:
        by_status.setdefault(KINDS[kind].status, []).append(kind)
    return {str(status): _failure(status, by_status[status]) for status in sorted(by_status)}


def _failure(status: int, kinds: list[str]) -> dict[str, Any]:
    narrowed = {"allOf": [{"$ref": f"{_SCHEMAS}Error"}], "properties": {"kind": {"enum": kinds}}}
    described: dict[str, Any] = {
        "description": ", ".join(f"`{kind}`" for kind in kinds),
        "content": {"application/json": {"schema": narrowed}},
    }
    if any(KINDS[kind].retryable for kind in kinds):
        described["headers"] = {
            "Retry-After": {"description": "Seconds to wait before asking again.", "schema": {"type": "integer"}}
        }
    return described


def _components(routes: Sequence[Route]) -> dict[str, Any]:
    """The data types as the standard has them; the references of the draft-07 document are moved, nothing else."""
    text = json.dumps(json_schema()["definitions"]).replace("#/definitions/", _SCHEMAS)
    schemas: dict[str, Any] = json.loads(text)
    # every JSON object: said without recursion, which many readers of this document cannot follow
    schemas["JSONObject"] = {"description": "A JSON object.", "type": "object", "additionalProperties": True}
    del schemas["JSONValue"]
    for body in (route.body for route in routes):
        if body is not None and body.__name__ not in schemas:
            schemas[body.__name__] = body.model_json_schema()
    return {"Error": _ERROR, "Tools": _TOOLS, **schemas}
