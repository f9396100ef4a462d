"""What environments say of themselves, and what is known of sessions."""

from __future__ import annotations

import time
from typing import Any

from ors.core.failures import Failure, failure
from ors.core.ports import Document, Offering, RunWork, Work
from ors.core.session import Session
from ors.jsontext import dump

__all__ = ["About", "about"]


class About:
    """Asks each environment once, where author code runs, and remembers what it said."""

    def __init__(self) -> None:
        self._said: dict[str, Document] = {}

    async def said(self, name: str, offering: Offering, run: RunWork) -> Document | Failure:
        """The metadata of an environment, as JSON: those it gives, else its name and what its documentation says."""
        if (known := self._said.get(name)) is not None:
            return known
        spec = offering.spec
        metadata = getattr(offering, "metadata", None)
        if metadata is None:
            return Document(dump({"name": spec.name, "description": spec.description or f"{spec.name} environment"}))

        def ask() -> Any:
            try:
                return Document(dump(metadata()))
            except Exception as exc:
                return failure("task_failed", f"what '{spec.name}' says of itself cannot be told: {exc}", ran="yes")

        told: Document | Failure = await run(Work(ask, label="get_metadata", serial=spec.name))
        if isinstance(told, Document):
            self._said[name] = told
        return told


def about(session: Session, now: float) -> dict[str, Any]:
    """When a session was made and last used, as seconds since the epoch, and how many calls it has had."""
    past = time.time() - now
    made, used = past + session.started, past + session.touched
    return {"created_at": made, "last_activity_at": used, "step_count": session.tally.calls}
