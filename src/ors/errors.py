"""Every error that this package raises towards its users.

ORSError
├── AuthoringError (also ValueError)   an environment class cannot be served as it is written
├── ToolError                          raised by an author's tool: it failed on purpose
├── RequestError                       a request cannot be served; carries kind, status and retryability
└── SettingsError (also ValueError)    a setting has a value that cannot be used
"""

from __future__ import annotations

from typing import Any

__all__ = ["AuthoringError", "ORSError", "RequestError", "SettingsError", "ToolError", "describe_errors"]

_MOST_CLAUSES = 20


class ORSError(Exception):
    """The root of all errors of this package."""


class AuthoringError(ORSError, ValueError):
    """An environment class cannot be served as written; the message names the class, the method and the mend."""


class ToolError(ORSError):
    """Raised in a tool to tell the agent that the call failed: `ok: false`, `Tool 'x' failed: <message>`, no reward."""


class RequestError(ORSError):
    """A request cannot be served. `kind` is one of `ors.core.failures.KINDS`; `detail` is for people."""

    def __init__(self, kind: str, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after


class SettingsError(ORSError, ValueError):
    """A setting has a value that cannot be used; the message names the setting and what it accepts."""


def describe_errors(exc: Any) -> str:
    """What a pydantic ValidationError found, a clause for each fault, without the input that caused it."""
    errors = exc.errors(include_url=False, include_input=False, include_context=False)
    clauses = []
    for error in errors[:_MOST_CLAUSES]:
        where = ".".join(str(part)[:100] for part in error["loc"] if not str(part).startswith("function-"))
        message = error["msg"].removeprefix("Value error, ")
        clauses.append(f"{where}: {message}" if where else message)
    if len(errors) > _MOST_CLAUSES:
        clauses.append(f"and {len(errors) - _MOST_CLAUSES} more")
    return "; ".join(clauses)
