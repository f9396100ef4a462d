"""Outcomes as OpenEnv's clients read them."""

from __future__ import annotations

from typing import Any

import msgspec

from ors.core.failures import Failure, failure
from ors.core.ports import Document, Outcome, StepOutcome
from ors.core.secrets import mask
from ors.faces.bodies import invalid_reply
from ors.faces.http import Reply, failure_reply, json_reply
from ors.jsontext import JSONValueError, dump

__all__ = ["ENDS", "encode", "error_frame", "failure_frame", "notice", "observed", "observed_whole", "outcome_reply"]

_encoder = msgspec.json.Encoder()

ENDS = frozenset(
    [
        *("setup_failed", "setup_timeout", "too_many_sessions", "unknown_session", "session_ended", "forbidden"),
        *("wrong_environment", "draining", "tool_hung", "loop_blocked", "worker_lost", "worker_unavailable"),
    ]
)
"""Failures after which a session is no more, or never was one: a socket is closed after it has said so."""

_CODES = {
    "setup_failed": "FACTORY_ERROR",
    "setup_timeout": "FACTORY_ERROR",
    "too_many_sessions": "CAPACITY_REACHED",
    "invalid_input": "VALIDATION_ERROR",
    "invalid_request": "VALIDATION_ERROR",
}


def encode(value: Any) -> bytes:
    """A value as JSON text; NaN is null. Raises JSONValueError."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return dump(value)


def observed(outcome: StepOutcome, notes: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a socket is sent of a step: `metadata` stands beside the observation only where there is any."""
    metadata = outcome.metadata or {}
    data: dict[str, Any] = {
        "observation": {"metadata": metadata, **outcome.observation},
        "reward": outcome.reward,
        "done": outcome.done,
    }
    notes = outcome.notes or notes
    if notes:
        data["metadata"] = {**metadata, "ors": notes}
    elif metadata:
        data["metadata"] = metadata
    return data


def observed_whole(outcome: StepOutcome) -> dict[str, Any]:
    """What an HTTP client is sent of a step: always four keys, and a reward that is a float."""
    metadata = outcome.metadata or {}
    return {
        "observation": {"metadata": metadata, **outcome.observation},
        "reward": None if outcome.reward is None else float(outcome.reward),
        "done": outcome.done,
        "metadata": metadata or None,
    }


def failure_frame(failed: Failure) -> bytes:
    """What a socket is told of a failure."""
    code = _CODES.get(failed.kind) or ("SESSION_ERROR" if failed.kind in ENDS else "EXECUTION_ERROR")
    about = dict(failed.about or {})
    words = mask(failed.detail)
    if code == "VALIDATION_ERROR":
        about["errors"] = failed.errors or [{"type": "value_error", "loc": [], "msg": words}]
        words = "Invalid message"
    if failed.retry_after is not None:
        about["retry_after"] = failed.retry_after
    return error_frame(words, code, about)


def error_frame(message: str, code: str, about: dict[str, Any] | None = None) -> bytes:
    """A frame that says what is wrong."""
    data = {"message": message, "code": code, **(about or {})}
    try:
        return encode({"type": "error", "data": data})
    except JSONValueError:
        plain = message.encode("utf-8", "backslashreplace").decode()
        return dump({"type": "error", "data": {"message": plain, "code": code}})


def outcome_reply(outcome: Outcome, headers: list[tuple[bytes, bytes]]) -> Reply:
    """What an HTTP client is answered."""
    if isinstance(outcome, Failure):
        if outcome.errors is not None or outcome.kind == "invalid_input":
            reply = invalid_reply(outcome.errors or [{"type": "value_error", "loc": [], "msg": mask(outcome.detail)}])
            reply.headers += headers
            return reply
        return failure_reply(Failure(*_masked(outcome)), headers)
    if isinstance(outcome, Document):
        return json_reply(outcome.body, headers=headers)
    assert isinstance(outcome, StepOutcome)
    try:
        whole = observed_whole(outcome)
    except OverflowError:
        return failure_reply(failure("bad_output", "the reward is too large for a float", ran="yes"), headers)
    return json_reply(encode(whole), headers=headers)


def notice(*sayings: str) -> list[tuple[bytes, bytes]]:
    """The header that tells people what they may want to know of an answer."""
    text = "; ".join(sayings)
    plain = "".join(char if char.isprintable() else " " for char in text).encode("ascii", "backslashreplace")
    return [(b"x-ors-notice", plain[:2000])] if sayings else []


def _masked(failed: Failure) -> tuple[Any, ...]:
    return failed.kind, mask(failed.detail), failed.retryable, failed.ran, failed.retry_after
