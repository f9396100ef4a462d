"""What authors of OpenEnv environments write with: actions, observations, states, and what describes an environment."""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "Action",
    "BaseMessage",
    "CodeExecResult",
    "ConcurrencyConfig",
    "EnvironmentMetadata",
    "HealthStatus",
    "Observation",
    "Scalar",
    "ServerCapacityStatus",
    "ServerMode",
    "SessionInfo",
    "State",
]

Scalar: TypeAlias = int | float | bool
"""A reward, or any other single number."""


class ServerMode(str, enum.Enum):  # noqa: UP042  str() of one is as in the existing package
    """What a server lets its clients do: all, or only what agents in production need."""

    SIMULATION = "simulation"
    PRODUCTION = "production"


class HealthStatus(str, enum.Enum):  # noqa: UP042  str() of one is as in the existing package
    """How a server is."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    DEGRADED = "degraded"


class Action(BaseModel):
    """The base of all actions. Fields that a subclass does not declare are refused."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, arbitrary_types_allowed=True)

    metadata: dict[str, Any] = Field(default_factory=dict, description="What else is to be said of the action")


class Observation(BaseModel):
    """The base of all observations. Fields that a subclass does not declare are refused."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, arbitrary_types_allowed=True)

    done: bool = Field(default=False, description="Whether the episode is over")
    reward: bool | int | float | None = Field(default=None, description="The reward of the last action")
    metadata: dict[str, Any] = Field(default_factory=dict, description="What else is to be said of the observation")


class State(BaseModel):
    """The base of all states, which may have any further fields."""

    model_config = ConfigDict(extra="allow", validate_assignment=True, arbitrary_types_allowed=True)

    episode_id: str | None = Field(default=None, description="The name of the current episode")
    step_count: int = Field(default=0, ge=0, description="How many steps the current episode has had")


class BaseMessage(BaseModel):
    """The base of messages and descriptions: exactly the declared fields, checked also when they are set."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class CodeExecResult(BaseMessage):
    """What running a piece of code came to."""

    stdout: str = Field(description="What it wrote to its standard output")
    stderr: str = Field(description="What it wrote to its standard error")
    exit_code: int = Field(description="Its exit code")


class EnvironmentMetadata(BaseMessage):
    """What an environment says of itself."""

    name: str = Field(description="The name of the environment")
    description: str = Field(description="What the environment does")
    readme_content: str | None = Field(default=None, description="The text of its README file")
    version: str | None = Field(default=None, description="Its version")
    author: str | None = Field(default=None, description="Who wrote it")
    documentation_url: str | None = Field(default=None, description="Where its documentation is")


class ConcurrencyConfig(BaseMessage):
    """How many sessions a server has at once, and how long an idle one is kept."""

    max_concurrent_envs: int = Field(default=1, ge=1, description="The most sessions at the same time")
    session_timeout: float | None = Field(
        default=None, gt=0, description="Seconds without activity until a session ends; None leaves it to the server"
    )


class ServerCapacityStatus(BaseMessage):
    """How full a server is."""

    active_sessions: int = Field(ge=0, description="How many sessions there are")
    max_sessions: int = Field(ge=1, description="How many there can be")

    @model_validator(mode="after")
    def check_capacity_bounds(self) -> ServerCapacityStatus:
        """There are never more than there can be."""
        if self.active_sessions > self.max_sessions:
            raise ValueError(
                f"active_sessions ({self.active_sessions}) cannot exceed max_sessions ({self.max_sessions})"
            )
        return self

    @property
    def available_slots(self) -> int:
        """How many more sessions there can be."""
        return self.max_sessions - self.active_sessions

    @property
    def is_at_capacity(self) -> bool:
        """Whether there can be no more."""
        return self.available_slots == 0

    @classmethod
    def from_counts(cls, active: int, max_sessions: int) -> ServerCapacityStatus:
        """The status by its two counts."""
        return cls(active_sessions=active, max_sessions=max_sessions)


class SessionInfo(BaseMessage):
    """What a server knows of one of its sessions. Times are seconds since the epoch."""

    session_id: str = Field(description="The id of the session")
    created_at: float = Field(description="When it was made")
    last_activity_at: float = Field(description="When it was last asked for something")
    step_count: int = Field(default=0, ge=0, description="How many steps it has had")
    environment_type: str = Field(description="The name of its environment's class")
