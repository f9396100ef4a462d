"""Every way in which something can fail: kind → HTTP status, whether a retry can help, how an agent is told.

A failure is data and is never a reward.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

__all__ = ["KINDS", "Failure", "Kind", "failure"]

Ran = Literal["no", "yes", "unknown"]


class Kind(NamedTuple):
    """What is the same for all failures of a kind.

    status: the HTTP status when no answer has begun. retryable: the same request can succeed later.
    reason: for answers to the agent (`ok: false`), the word in `reason`; None for all others.
    """

    status: int
    retryable: bool = False
    reason: str | None = None


KINDS: dict[str, Kind] = {
    # the request
    "invalid_json": Kind(400),
    "invalid_request": Kind(422),
    "invalid_header": Kind(400),
    "unsupported_media_type": Kind(415),
    "body_too_large": Kind(413),
    "not_found": Kind(404),
    "method_not_allowed": Kind(405),
    "unauthorized": Kind(401),
    "forbidden": Kind(403),
    "foreign_origin": Kind(403),
    "client_gone": Kind(400),
    # tasks
    "unknown_environment": Kind(404),
    "unknown_split": Kind(400),
    "invalid_index": Kind(400),
    "not_supported": Kind(501),
    "bad_task": Kind(500),
    "bad_splits": Kind(500),
    "task_failed": Kind(500),
    # sessions
    "missing_session_id": Kind(400),
    "unknown_session": Kind(404),
    "session_exists": Kind(400),
    "session_ended": Kind(410),
    "wrong_environment": Kind(400),
    "toolset_not_supported": Kind(400),
    "setup_failed": Kind(500),
    "setup_timeout": Kind(500),
    "starting": Kind(503, retryable=True),
    "worker_lost": Kind(410),
    "worker_unavailable": Kind(503, retryable=True),
    # limits
    "draining": Kind(503, retryable=True),
    "too_many_sessions": Kind(503, retryable=True),
    "too_many_calls": Kind(429, retryable=True),
    "too_many_streams": Kind(503, retryable=True),
    "results_full": Kind(429, retryable=True),
    # calls, as the agent is told
    "unknown_tool": Kind(404, reason="not_found"),
    "invalid_input": Kind(422, reason="input_validation"),
    "episode_finished": Kind(409, reason="episode_finished"),
    "tool_error": Kind(500, reason="tool_error"),
    # calls that broke
    "unknown_call": Kind(404),
    "call_conflict": Kind(409),
    "call_forgotten": Kind(410),
    "tool_failed": Kind(500),
    "tool_timeout": Kind(500),
    "tool_hung": Kind(500),
    "loop_blocked": Kind(500),
    "call_cancelled": Kind(409),
    "bad_output": Kind(500),
    "prompt_failed": Kind(500),
    "not_reset": Kind(409),
    # ourselves
    "internal": Kind(500),
}


class Failure(msgspec.Struct, frozen=True):
    """Something failed: its kind, words for people, whether a retry can help, and whether author code ran.

    errors: each fault of an input, as JSON objects, for protocols that list them. about: what else programs are told.
    """

    kind: str
    detail: str
    retryable: bool = False
    ran: Ran = "no"
    retry_after: float | None = None
    errors: list[dict[str, Any]] | None = None
    about: dict[str, Any] | None = None

    @property
    def status(self) -> int:
        """The HTTP status of this kind."""
        return KINDS[self.kind].status

    @property
    def reason(self) -> str | None:
        """The word that tells an agent why its call failed; None when the failure is not an answer to the agent."""
        return KINDS[self.kind].reason


def failure(kind: str, detail: str, *, ran: Ran = "no", retry_after: float | None = None) -> Failure:
    """Make a failure of a known kind."""
    return Failure(kind, detail, KINDS[kind].retryable, ran, retry_after)
