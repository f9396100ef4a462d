"""The base of clients of language models; those of certain services are not there yet."""

from openenv._names import lazy
from ors.openenv.llm_client import LLMClient, LLMResponse, ToolCall

__all__ = ["LLMClient", "LLMResponse", "ToolCall"]
__getattr__, __dir__ = lazy(__name__, "ors.openenv", [], ["AnthropicClient", "OpenAIClient", "create_llm_client"])
