"""What a judge asks: the base of clients of language models, and what they answer with."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

__all__ = ["LLMClient", "LLMResponse", "ToolCall"]


@dataclass
class ToolCall:
    """A tool that a model wants to have called."""

    id: str
    name: str
    args: dict[str, Any]


@dataclass
class LLMResponse:
    """What a model says, and what it wants to have called."""

    content: str
    tool_calls: list[ToolCall] = field(default_factory=list)

    def to_message_dict(self) -> dict[str, Any]:
        """The answer as a message of a chat."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.args)}}
                for call in self.tool_calls
            ]
        return message


class LLMClient(ABC):
    """The base of clients of language models: a subclass says how a prompt is completed.

    endpoint: the address of the service. port: its port, where the address does not name it.
    """

    def __init__(self, endpoint: str, port: int | None) -> None:
        self.endpoint = endpoint
        self.port = port

    @abstractmethod
    async def complete(self, prompt: str, **kwargs: Any) -> str:
        """The model's answer to a prompt."""

    async def complete_with_tools(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **kwargs: Any
    ) -> LLMResponse:
        """The model's answer in a chat with tools."""
        raise NotImplementedError(f"{type(self).__name__} cannot call tools")

    @property
    def base_url(self) -> str:
        """The address with its port. Raises ValueError for one that is no address, or that names another port."""
        parts = urlsplit(self.endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the endpoint is an address that begins with http:// or https:// and names a host")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("the endpoint holds no credentials, no query and no fragment")
        if self.port is not None and parts.port not in (None, self.port):
            raise ValueError(f"the endpoint names the port {parts.port}, and {self.port} is given")
        place = parts.netloc if parts.port or self.port is None else f"{parts.netloc}:{self.port}"
        return urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
