"""Every error that this package raises towards its users.

ORSError
├── AuthoringError (also ValueError)   an environment class cannot be served as it is written
├── ToolError                          raised by an author's tool: it failed on purpose
├── RequestError                       a request cannot be served; carries kind, status and retryability
├── SettingsError (also ValueError)    a setting has a value that cannot be used
├── TaskFileError (also ValueError)    a file or a folder of tasks cannot be read; carries path and row
├── OpenEnvError                       what servers of OpenEnv environments raise
│   ├── ConcurrencyConfigurationError  more sessions are asked for than the environment is written for
│   ├── SessionCapacityError           there are as many sessions as there may be
│   ├── SessionNotFoundError           no session has this id
│   ├── SessionCreationError           a session could not be made
│   └── EnvironmentFactoryError        the environment could not be made
└── ClientError                        a client could not do what was asked; carries sid, kind, status and detail
    ├── ToolCallError                  the call ran into the agent's own mistake (`ok: false`); the agent may go on
    ├── AuthenticationError            the server does not know the API key
    ├── RequestRefused                 the server answered with an error that asking again does not mend
    ├── ToolFailed                     the tool or the environment broke; leave the episode out
    ├── ProtocolError                  what answers does not speak the standard
    ├── RequestLost                    the connection was lost, and only a second run could tell what became of it
    ├── MaxRetriesError                asked again as often as allowed; the last failure is the cause
    │   └── DeadlineExceeded (also TimeoutError)   the time for the request, with all its attempts, is over
    └── SessionTerminatedError         the session cannot be used (closed here, or never opened)
        └── SessionLost                the server has ended or lost the session

All below ClientError but ToolCallError and AuthenticationError are RuntimeErrors too.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AuthenticationError",
    "AuthoringError",
    "ClientError",
    "ConcurrencyConfigurationError",
    "DeadlineExceeded",
    "EnvironmentFactoryError",
    "MaxRetriesError",
    "ORSError",
    "OpenEnvError",
    "ProtocolError",
    "RequestError",
    "RequestLost",
    "RequestRefused",
    "SessionCapacityError",
    "SessionCreationError",
    "SessionLost",
    "SessionNotFoundError",
    "SessionTerminatedError",
    "SettingsError",
    "TaskFileError",
    "ToolCallError",
    "ToolError",
    "ToolFailed",
    "describe_errors",
]

_MOST_CLAUSES = 20


class ORSError(Exception):
    """The root of all errors of this package."""


class AuthoringError(ORSError, ValueError):
    """An environment class cannot be served as written; the message names the class, the method and the mend."""


class ToolError(ORSError):
    """Raised in a tool to tell the agent that the call failed: `ok: false`, `Tool 'x' failed: <message>`, no reward."""


class TaskFileError(ORSError, ValueError):
    """A file or a folder of tasks cannot be read. `row` counts from 1; None where no single row is at fault."""

    def __init__(self, path: object, detail: str, row: int | None = None) -> None:
        super().__init__(f"{path}{'' if row is None else f', row {row}'}: {detail}")
        self.path = str(path)
        self.detail = detail
        self.row = row

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.detail, self.row)


class RequestError(ORSError):
    """A request cannot be served. `kind` is one of `ors.core.failures.KINDS`; `detail` is for people."""

    def __init__(self, kind: str, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after


class SettingsError(ORSError, ValueError):
    """A setting has a value that cannot be used; the message names the setting and what it accepts."""


class OpenEnvError(ORSError):
    """The root of the errors of OpenEnv servers."""


class ConcurrencyConfigurationError(OpenEnvError):
    """More than one session is asked for, of an environment that is written for one at a time."""

    def __init__(self, environment_name: str, max_concurrent_envs: int, message: str | None = None) -> None:
        self.environment_name = environment_name
        self.max_concurrent_envs = max_concurrent_envs
        super().__init__(
            message
            or f"'{environment_name}' says SUPPORTS_CONCURRENT_SESSIONS = False, so max_concurrent_envs cannot be "
            f"{max_concurrent_envs}. Set it to 1; or, if sessions share nothing, set "
            "SUPPORTS_CONCURRENT_SESSIONS = True in the class"
        )


class SessionCapacityError(OpenEnvError):
    """There are as many sessions as there may be."""

    def __init__(self, active_sessions: int, max_sessions: int, message: str | None = None) -> None:
        self.active_sessions = active_sessions
        self.max_sessions = max_sessions
        super().__init__(
            message or f"the server is at capacity: {active_sessions} of {max_sessions} sessions are active"
        )


class SessionNotFoundError(OpenEnvError):
    """No session has this id."""

    def __init__(self, session_id: str, message: str | None = None) -> None:
        self.session_id = session_id
        super().__init__(message or f"there is no session '{session_id}'")


class SessionCreationError(OpenEnvError):
    """A session could not be made."""

    def __init__(self, reason: str, message: str | None = None) -> None:
        self.reason = reason
        super().__init__(message or f"the session could not be made: {reason}")


class EnvironmentFactoryError(OpenEnvError):
    """The environment could not be made."""

    def __init__(self, factory_name: str, message: str | None = None) -> None:
        self.factory_name = factory_name
        super().__init__(message or f"'{factory_name}' made no environment")


class ClientError(ORSError):
    """A client could not do what was asked.

    sid: the session, where it is about one. kind: a word for programs, the server's own where it has them. status: the
    HTTP status, if there was one. detail: the words without the session's id. retryable: what the server says of it.
    The failure that led to this one is its `__cause__`; earlier attempts are in its notes.
    """

    def __init__(
        self,
        detail: str = "",
        *,
        sid: str | None = None,
        kind: str | None = None,
        status: int | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"(sid={sid}) {detail}" if sid else detail)
        self.detail = detail
        self.sid = sid
        self.kind = kind
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        # keyword arguments get lost on the way to another process otherwise
        return _rebuild, (type(self), dict(self.__dict__))


def _rebuild(cls: type[ClientError], state: dict[str, Any]) -> ClientError:
    known = ("sid", "kind", "status", "retryable", "retry_after")
    error = cls(state.get("detail", ""), **{name: state[name] for name in known if name in state})
    error.__dict__.update(state)
    return error


class ToolCallError(ClientError):
    """The call did not fit, or the tool failed on purpose: words for the agent, and no reward.

    `reason` is the server's word for it where it has one: `not_found`, `input_validation`, `tool_error`,
    `episode_finished`; of this client, `bad_input_shape`.
    """

    @property
    def reason(self) -> str | None:
        """The server's word for the kind of mistake."""
        return self.kind


class AuthenticationError(ClientError):
    """The server does not know the API key."""


class RequestRefused(ClientError, RuntimeError):
    """The server answered with an error, and the same request would get it again."""


class ToolFailed(ClientError, RuntimeError):
    """The tool or the environment broke. It says nothing about the agent: leave the episode out."""


class ProtocolError(ClientError, RuntimeError):
    """What answers does not speak the standard, or not over this address."""


class RequestLost(ClientError, RuntimeError):
    """The connection was lost, and the server cannot be asked again without doing it again.

    It may have been done or not. Servers that take the ids of their clients' calls never leave this open.
    """


class MaxRetriesError(ClientError, RuntimeError):
    """The request failed in passing ways until no attempt was left; the last failure is the cause."""


class DeadlineExceeded(MaxRetriesError, TimeoutError):
    """The time for the request, with all its attempts and waits, is over."""


class SessionTerminatedError(ClientError, RuntimeError):
    """The session cannot be used: it was closed here, or never opened."""


class SessionLost(SessionTerminatedError):
    """The server has ended or lost the session; nothing more will come of it."""


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
