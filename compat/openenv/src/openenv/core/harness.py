"""Agents that run beside their environment; not there yet."""

from openenv._names import lazy
from ors.openenv.mcp_types import RESERVED_TOOL_NAMES

_LATER = """
    AgenticHarnessAdapter CLIHarnessAdapter HarnessAction HarnessAdapter HarnessClientMessage HarnessConfig
    HarnessEnvironment HarnessError HarnessEvent HarnessEventType HarnessMCPBridge HarnessNotRunningError HarnessProcess
    HarnessResponse HarnessRolloutResult HarnessRunLimits HarnessStartupError HarnessTransport HarnessTurnTimeoutError
    LoopOwningSession MCPHarnessAdapter Message ModelStep ModelStepResult ResourceSession ResourceSessionFactory
    RolloutEvent SessionMCPBridge StepEnvSessionAdapter ToolResult ToolTraceEntry TraceEntry TrainableSession
    TrainingTrace TrainingTurn VerifyResult build_bridge_server build_harness_rollout_func events_to_metadata
    resolve_tool_conflicts
"""

__all__ = ["RESERVED_TOOL_NAMES"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", [], _LATER.split())
