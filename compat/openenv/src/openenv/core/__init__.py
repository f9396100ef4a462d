"""What environments and their clients are written with."""

from openenv._names import lazy
from openenv.core import env_server
from openenv.core.env_server import *

_CLIENTS = ["EnvClient", "GenericAction", "GenericEnvClient", "MCPClientBase", "MCPToolClient", "SyncEnvClient"]
_SERVER = ["HTTPEnvServer", "create_app", "create_fastapi_app"]
_LLM = ["LLMClient", "LLMResponse", "ToolCall"]
_LATER = ["AnthropicClient", "OpenAIClient", "create_llm_client"]
_LATER += ["WebInterfaceManager", "create_web_interface_app"]

__all__ = sorted({*_CLIENTS, *env_server.__all__})
__getattr__, __dir__ = lazy(__name__, "ors.openenv", [*_CLIENTS, *_SERVER, *_LLM], _LATER)
