"""Environments with tools."""

from ors.openenv.mcp_environment import MCP_TOOL_CALL_TIMEOUT, MCPEnvironment, get_server_tools

__all__ = ["MCP_TOOL_CALL_TIMEOUT", "MCPEnvironment", "get_server_tools"]
