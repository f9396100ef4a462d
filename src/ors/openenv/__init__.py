"""OpenEnv: environments that are reset and take steps. What their authors write with, their servers and their clients.

The names are those of the `openenv` package, and the small distribution `ors-kit-openenv` has them under its import
paths. Each is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "clients": (
        "AutoAction",
        "AutoEnv",
        "Batch",
        "BatchError",
        "EnvClient",
        "GenericAction",
        "GenericEnvClient",
        "GenericMCPObservation",
        "MCPClientBase",
        "MCPToolClient",
        "Played",
        "ServerError",
        "StepResult",
        "SyncEnvClient",
    ),
    "environment": ("Environment", "Message", "ModelTokenizer", "TaskProvider", "Transform"),
    "exceptions": (
        "ConcurrencyConfigurationError",
        "EnvironmentFactoryError",
        "OpenEnvError",
        "SessionCapacityError",
        "SessionCreationError",
        "SessionNotFoundError",
    ),
    "llm_client": ("LLMClient", "LLMResponse", "ToolCall"),
    "mcp_environment": ("MCPEnvironment",),
    "mcp_types": (
        "RESERVED_TOOL_NAMES",
        "CallToolAction",
        "CallToolObservation",
        "JsonRpcError",
        "JsonRpcErrorCode",
        "JsonRpcRequest",
        "JsonRpcResponse",
        "ListToolsAction",
        "ListToolsObservation",
        "McpMethod",
        "Tool",
        "ToolError",
        "ToolErrorType",
        "WSMCPMessage",
        "WSMCPResponse",
    ),
    "messages": (
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
    ),
    "metadata": ("EnvironmentManifest", "load_environment_metadata", "read_manifest"),
    "models": (
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
    ),
    "providers": (
        "ContainerProvider",
        "DockerSwarmProvider",
        "KubernetesProvider",
        "LocalDockerProvider",
        "LocalProcessProvider",
        "RuntimeProvider",
        "UVProvider",
    ),
    "rubrics": (
        "ExponentialDiscountingTrajectoryRubric",
        "Gate",
        "LLMJudge",
        "Rubric",
        "RubricDict",
        "RubricList",
        "Sequential",
        "TrajectoryRubric",
        "WeightedSum",
    ),
    "serialization": ("deserialize_action", "deserialize_action_with_preprocessing", "serialize_observation"),
    "server": ("HTTPEnvServer", "create_app", "create_fastapi_app"),
    "transforms": ("CompositeTransform", "NullTransform"),
    "utils": ("convert_to_ws_url", "hf_space_subdomain", "run_async_safely"),
}
_HOME_OF = {name: f"ors.openenv.{module}" for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'ors.openenv' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
