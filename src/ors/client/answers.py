"""What servers answer, as values and errors. Readers are lenient where servers differ: unknown keys are left out."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ors.client.transport import Answer
from ors.errors import AuthenticationError, ClientError, ProtocolError, RequestRefused, SessionLost
from ors.jsontext import JSONTextError, load
from ors.types import BLOCKS, ImageBlock, TerminalToolSpec, TextBlock, ToolOutput, ToolSpec

__all__ = ["LOST_KINDS", "blocks_of", "output_of", "parse", "refusal", "retry_after", "terminal_of", "tools_of"]

LOST_KINDS = frozenset(("unknown_session", "session_ended", "worker_lost", "tool_hung", "loop_blocked"))
"""Failures after which nothing more comes of a session."""
_WORDS = 2000


def parse(body: bytes, what: str, sid: str | None = None) -> Any:
    """JSON as servers write it. Raises ProtocolError."""
    try:
        return load(body)
    except JSONTextError as exc:
        try:
            # what the strict reader refuses (a lone surrogate, a key twice) is still an answer
            return json.loads(body)
        except ValueError:
            words = f"{what} answered what is no JSON ({exc}): {body[:200]!r}"
            raise ProtocolError(words, sid=sid, kind="bad_answer") from exc


def refusal(answer: Answer, what: str, sid: str | None = None, *, of_session: bool = False) -> ClientError:
    """The error that an answer stands for. `of_session`: the route is about a session that was opened."""
    detail, kind, retryable = _explained(answer)
    status = answer.status
    words = f"{what}: {status} {detail}" if detail else f"{what}: {status}"
    about: dict[str, Any] = {"sid": sid, "kind": kind, "status": status, "retryable": retryable}
    if status == 401:
        return AuthenticationError(words, **about)
    if 300 <= status < 400:
        to = answer.headers.get("Location", "elsewhere")
        words = (
            f"{what} is answered with a redirection to {to[:500]}: use the address itself, and a name that it serves"
        )
        return RequestRefused(words, **{**about, "kind": "redirected"})
    if of_session and _means_lost(status, kind, detail):
        return SessionLost(words, **{**about, "kind": kind or "session_ended"})
    return RequestRefused(words, retry_after=retry_after(answer.headers), **about)


def _means_lost(status: int, kind: str | None, detail: str) -> bool:
    if kind is not None:
        return kind in LOST_KINDS
    # a framework's own words mean that the route is missing, not the session
    return status == 410 or (status == 404 and detail not in ("", "Not Found"))


def _explained(answer: Answer) -> tuple[str, str | None, bool | None]:
    try:
        said = json.loads(answer.body)
    except ValueError:
        return answer.body[:_WORDS].decode("utf-8", "replace").strip(), None, None
    if not isinstance(said, dict):
        return str(said)[:_WORDS], None, None
    detail = said.get("detail", "")
    if isinstance(detail, list):
        # a list of faults; the input that it repeats may hold secrets
        detail = "; ".join(_fault(item) for item in detail)
    kind, retryable = said.get("kind"), said.get("retryable")
    return (
        str(detail)[:_WORDS],
        kind if isinstance(kind, str) else None,
        retryable if isinstance(retryable, bool) else None,
    )


def _fault(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    where = ".".join(str(part) for part in item.get("loc", ()))
    return f"{where}: {item.get('msg', '')}" if where else str(item.get("msg", ""))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of `Retry-After`, which is a number or a date; None where it is neither."""
    text = headers.get("Retry-After", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
        seconds = max(seconds, 0.0)
    return seconds if 0 <= seconds < float("inf") else None


def blocks_of(value: Any, what: str, sid: str | None) -> list[TextBlock | ImageBlock]:
    """The blocks of a prompt."""
    try:
        return BLOCKS.validate_python(value)
    except ValidationError:
        pass
    try:
        if isinstance(value, list):
            return BLOCKS.validate_python([_block(item) for item in value])
        raise ProtocolError(f"{what} answered no list of blocks", sid=sid, kind="bad_answer")
    except ValidationError as exc:
        raise ProtocolError(f"{what} answered blocks that are none: {_first(exc)}", sid=sid, kind="bad_answer") from exc


def output_of(value: Any, sid: str | None) -> ToolOutput:
    """The result of a call."""
    try:
        return ToolOutput.model_validate(value)
    except ValidationError:
        pass
    try:
        known = {name: value[name] for name in ToolOutput.model_fields if value.get(name) is not None}
        return ToolOutput.model_validate({**known, "blocks": [_block(item) for item in known.get("blocks", ())]})
    except (ValidationError, AttributeError, TypeError) as exc:
        words = _first(exc) if isinstance(exc, ValidationError) else str(exc)
        raise ProtocolError(f"the call came back as no result: {words}", sid=sid, kind="bad_answer") from exc


def tools_of(value: Any, what: str, sid: str | None = None) -> list[ToolSpec]:
    """The tools of a list of tools."""
    try:
        return [
            ToolSpec(
                name=tool["name"], description=tool.get("description") or "", input_schema=tool.get("input_schema")
            )
            for tool in value["tools"]
        ]
    except (KeyError, TypeError, AttributeError, ValidationError) as exc:
        raise ProtocolError(f"{what} answered no list of tools", sid=sid, kind="bad_answer") from exc


def terminal_of(value: Any) -> TerminalToolSpec | None:
    """The tool that takes the agent's final message, where a list of tools names one."""
    said = value.get("terminal_tool") if isinstance(value, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        return None
    return TerminalToolSpec(name=said["name"], arg=said.get("arg"), description=said.get("description") or "")


def _block(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    fields = (ImageBlock if "data" in item else TextBlock).model_fields
    return {name: item[name] for name in fields if item.get(name) is not None}


def _first(exc: ValidationError) -> str:
    fault = exc.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
