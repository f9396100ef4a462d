"""Why a session cannot be asked by whoever asks."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from ors.core.failures import Failure, failure
from ors.core.ports import Principal
from ors.core.session import Session

__all__ = ["acts_in", "misdirected"]

Ended = Mapping[str, tuple[float, str, str | None]]


def misdirected(sid: str, session: Session | None, ended: Ended, principal: Principal, env: str | None) -> Failure:
    """Why this session cannot be asked by this principal under this environment's name."""
    if session is None:
        past = ended.get(sid)
        if past is not None and (_same_key(past[2], principal.key) or acts_in(sid, principal)):
            return failure("session_ended", f"Session {past[1]}")
        return failure("unknown_session", "Active environment not found; POST /create opens one")
    if session.principal != principal and not acts_in(sid, principal):
        return failure("forbidden", "this session belongs to another key")
    if env is not None and env != session.env:
        words = f"this session is of environment '{session.env}', not '{env}'; use /{session.env}/…"
        return failure("wrong_environment", words)
    return failure("forbidden", "an agent's token is for the tools of its session")


def acts_in(sid: str, principal: Principal) -> bool:
    """Whether a principal is the agent of this session: it may use its tools and no more."""
    return principal.kind == "agent" and principal.session == sid


def _same_key(a: str | None, b: str | None) -> bool:
    return hmac.compare_digest(a or "", b or "")
