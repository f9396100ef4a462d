"""Routes of a FastAPI application as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["GetEndpointConfig", "register_get_endpoints"]


@dataclass
class GetEndpointConfig:
    """A route that is read."""

    path: str
    handler: Callable[[], Any]
    response_model: type
    tag: str
    summary: str
    description: str


def register_get_endpoints(app: Any, configs: Iterable[GetEndpointConfig]) -> None:
    """Add such routes to an application."""
    for config in configs:
        app.get(
            config.path,
            response_model=config.response_model,
            tags=[config.tag],
            summary=config.summary,
            description=config.description,
        )(config.handler)
