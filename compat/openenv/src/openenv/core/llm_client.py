"""Clients of language models; not there yet."""

from openenv._names import lazy

__all__: list[str] = []
__getattr__, __dir__ = lazy(
    __name__,
    "ors.openenv",
    [],
    ["AnthropicClient", "LLMClient", "LLMResponse", "OpenAIClient", "ToolCall", "create_llm_client"],
)
