"""Frames of OpenEnv's WebSocket protocol, answered by a session: what its server would send, from the outcomes."""

from __future__ import annotations

from typing import Any

from ors.core.failures import Failure
from ors.core.ports import Document, Op, Start, StepOutcome

from .play import ME, plain


async def answered(session: Any, frame: dict[str, Any]) -> dict[str, Any]:
    """The answer to a frame."""
    kind, data = frame["type"], frame.get("data", {})
    if kind == "reset":
        op = Op("reset", start=Start(options=data))
    elif kind == "step":
        op = Op("step", input=data)
    else:
        op = Op("state")
    return framed(await session.host.perform(session.sid, ME, op))


def framed(outcome: Any) -> dict[str, Any]:
    """An outcome as a frame."""
    if isinstance(outcome, StepOutcome):
        data = plain(outcome)
        data.pop("notes", None)
        return {"type": "observation", "data": data | ({"metadata": outcome.metadata} if outcome.metadata else {})}
    if isinstance(outcome, Document):
        return {"type": "state", "data": plain(outcome)}
    assert isinstance(outcome, Failure)
    if outcome.errors is not None:
        data = {"message": "Invalid message", "code": "VALIDATION_ERROR", "errors": outcome.errors}
        return {"type": "error", "data": data}
    return {"type": "error", "data": {"message": outcome.detail, "code": "EXECUTION_ERROR"}}
