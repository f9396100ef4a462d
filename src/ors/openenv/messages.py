"""What clients of OpenEnv servers send, and what they are sent."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from ors.openenv.models import BaseMessage, HealthStatus

__all__ = [
    "GetTaskRangeRequest",
    "GetTaskRequest",
    "HealthResponse",
    "ListTasksRequest",
    "NumTasksRequest",
    "ResetRequest",
    "ResetResponse",
    "SchemaResponse",
    "StepRequest",
    "StepResponse",
    "WSCloseMessage",
    "WSErrorCode",
    "WSErrorResponse",
    "WSIncomingMessage",
    "WSObservationResponse",
    "WSResetMessage",
    "WSStateMessage",
    "WSStateResponse",
    "WSStepMessage",
]


class WSErrorCode(str, enum.Enum):  # noqa: UP042  str() of one is as in the existing package
    """What kind of error a WebSocket client is told."""

    INVALID_JSON = "INVALID_JSON"
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    CAPACITY_REACHED = "CAPACITY_REACHED"
    FACTORY_ERROR = "FACTORY_ERROR"
    SESSION_ERROR = "SESSION_ERROR"


class ResetRequest(BaseModel):
    """The body of `POST /reset`: these fields, and whatever else the environment's `reset` takes."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"seed": 42, "episode_id": "episode-001"}, {}]}
    )

    seed: int | None = Field(default=None, ge=0, description="What an episode that can be repeated starts from")
    episode_id: str | None = Field(default=None, max_length=255, description="A name for the episode")


class _Observed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    observation: dict[str, Any] = Field(description="What is observed")
    reward: float | None = Field(default=None, description="The reward")
    done: bool = Field(default=False, description="Whether the episode is over")
    metadata: dict[str, Any] | None = Field(default=None, description="What else the environment says")


class ResetResponse(_Observed):
    """The answer to `POST /reset`."""


class StepRequest(BaseModel):
    """The body of `POST /step`: these fields, and whatever else the environment's `step` takes."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {"action": {"value": 1}, "timeout_s": 30.0},
                {"action": {"value": 1}, "render": True, "verbose": False},
            ]
        },
    )

    action: dict[str, Any] = Field(description="The action, as the environment's schema says")
    timeout_s: float | None = Field(default=None, gt=0, description="How many seconds the step may take")
    request_id: str | None = Field(default=None, max_length=255, description="A name for the request")


class StepResponse(_Observed):
    """The answer to `POST /step`."""


class SchemaResponse(BaseMessage):
    """The answer to `GET /schema`."""

    action: dict[str, Any] = Field(description="The JSON Schema of actions")
    observation: dict[str, Any] = Field(description="The JSON Schema of observations")
    state: dict[str, Any] = Field(description="The JSON Schema of states")
    reset_observation: dict[str, Any] | None = Field(
        default=None, description="The JSON Schema of the observations that `reset` returns"
    )

    @model_serializer(mode="wrap")
    def _without_what_is_not_said(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        if self.reset_observation is None:
            data.pop("reset_observation", None)
        return data


class HealthResponse(BaseMessage):
    """The answer to `GET /health`."""

    status: HealthStatus = Field(default=HealthStatus.HEALTHY, description="How the server is")


class ListTasksRequest(BaseMessage):
    """Asks for every task of a split."""

    split: str = Field(description="The name of the split")


class NumTasksRequest(BaseMessage):
    """Asks how many tasks a split has."""

    split: str = Field(description="The name of the split")


class GetTaskRequest(BaseMessage):
    """Asks for one task of a split."""

    split: str = Field(description="The name of the split")
    index: int = Field(description="The place of the task in its split, from 0")


class GetTaskRangeRequest(BaseMessage):
    """Asks for a slice of a split."""

    split: str = Field(description="The name of the split")
    start: int | None = Field(default=None, description="The first place")
    stop: int | None = Field(default=None, description="The place after the last")


class WSResetMessage(BaseMessage):
    """Asks for a new episode."""

    type: Literal["reset"] = Field(default="reset", description="What is asked for")
    data: dict[str, Any] = Field(default_factory=dict, description="What the environment's `reset` is given")


class WSStepMessage(BaseMessage):
    """Acts."""

    type: Literal["step"] = Field(default="step", description="What is asked for")
    data: dict[str, Any] = Field(description="The action, as the environment's schema says")


class WSStateMessage(BaseMessage):
    """Asks for the state."""

    type: Literal["state"] = Field(default="state", description="What is asked for")


class WSCloseMessage(BaseMessage):
    """Ends the session."""

    type: Literal["close"] = Field(default="close", description="What is asked for")


WSIncomingMessage: TypeAlias = Annotated[
    WSResetMessage | WSStepMessage | WSStateMessage | WSCloseMessage, Field(discriminator="type")
]
"""Any message of a client but those of MCP."""


class WSObservationResponse(BaseModel):
    """Answers a reset or a step."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["observation"] = Field(default="observation", description="What this is")
    data: dict[str, Any] = Field(description="The observation with its reward and `done`")


class WSStateResponse(BaseModel):
    """Answers a question for the state."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["state"] = Field(default="state", description="What this is")
    data: dict[str, Any] = Field(description="The state")


class WSErrorResponse(BaseModel):
    """Says that something could not be done."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["error"] = Field(default="error", description="What this is")
    data: dict[str, Any] = Field(description="The message, the code, and what else there is to know")
