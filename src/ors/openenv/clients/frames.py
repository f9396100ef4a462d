"""The messages of OpenEnv's WebSocket: as texts, and what is said in them of errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

__all__ = ["ENDS_SESSION", "TOO_LARGE", "ServerError", "code_of", "decoded", "encoded", "last_words", "words_of"]

ENDS_SESSION = frozenset(["CAPACITY_REACHED", "FACTORY_ERROR", "SESSION_ERROR"])
"""The codes of errors after which there is no session."""
TOO_LARGE = "MESSAGE_TOO_LARGE"
"""The code of the error for what one side does not take, where the session goes on all the same."""


class ServerError(RuntimeError):
    """The server answered with an error. code: its kind; data: what else the server said of it."""

    def __init__(self, message: str, code: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"Server error: {message} (code: {code})")
        self.message = message
        self.code = code
        self.data = dict(data or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.code, self.data)


def code_of(answer: Mapping[str, Any]) -> str:
    """The code of an error; nothing for what is none."""
    data = answer.get("data")
    if answer.get("type") != "error":
        return ""
    return str(data.get("code", "UNKNOWN")) if isinstance(data, Mapping) else "UNKNOWN"


def words_of(answer: Mapping[str, Any]) -> str:
    """What an error says."""
    data = answer.get("data")
    return str(data.get("message", "Unknown error")) if isinstance(data, Mapping) else "Unknown error"


def encoded(message: Mapping[str, Any]) -> str:
    """A message as text."""
    try:
        return msgspec.json.encode(message).decode()
    except (TypeError, OverflowError, ValueError):
        return json.dumps(message)


def decoded(text: str) -> dict[str, Any]:
    """A text as an answer. Raises RuntimeError for what is none."""
    try:
        answer = msgspec.json.decode(text)
    except msgspec.DecodeError:
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
    if not isinstance(answer, dict):
        raise RuntimeError(f"the server answered with {text[:200]!r}, which is no message")
    return answer


def last_words(unasked: Iterable[str]) -> dict[str, Any] | None:
    """The error with which a server ends a session of its own accord. Whatever else it says is nobody's answer."""
    for text in unasked:
        try:
            answer = decoded(text)
        except RuntimeError:
            continue
        if "id" not in answer and code_of(answer) in ENDS_SESSION:
            return answer
    return None
