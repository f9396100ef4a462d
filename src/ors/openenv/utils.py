"""Small things that environments and programs for OpenEnv use."""

from __future__ import annotations

import re
from collections.abc import Coroutine
from typing import Any, TypeVar

from ors.openenv.mcp_environment import _run

__all__ = ["convert_to_ws_url", "hf_space_subdomain", "run_async_safely"]

T = TypeVar("T")


def run_async_safely(coro: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, also where an event loop is running."""
    result: T = _run(coro)
    return result


def convert_to_ws_url(url: str) -> str:
    """The WebSocket address of a server at an HTTP address, or at a bare host."""
    url = url.rstrip("/")
    for known, other in (("http://", "ws://"), ("https://", "wss://")):
        if url.startswith(known):
            return other + url.removeprefix(known)
    return url if url.startswith(("ws://", "wss://")) else f"ws://{url}"


def hf_space_subdomain(repo_id: str) -> str:
    """The first part of the host name of a hub's space."""
    return re.sub(r"[^a-z0-9]", "-", repo_id.lower())
