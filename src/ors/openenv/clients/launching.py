"""A client whose server has yet to be started: `await` it, use it with `with`, call `.sync()`, or just use it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ors.openenv.providers.base import ContainerProvider

if TYPE_CHECKING:
    from ors.openenv.clients.env_client import EnvClient
    from ors.openenv.clients.sync_client import SyncEnvClient

__all__ = ["Launch", "from_hub", "in_docker"]

ClientT = TypeVar("ClientT", bound="EnvClient[Any, Any, Any]")
Starting = Callable[[], tuple[Any, str, dict[str, Any]]]

_READY_S = 30.0
_CLIENT_OPTIONS = frozenset(
    [
        "connect_timeout_s",
        "headers",
        "max_message_size_mb",
        "message_timeout_s",
        "mode",
        "websocket_ping_interval_s",
        "websocket_ping_timeout_s",
    ]
)


class Launch(Generic[ClientT]):
    """Starts a server once, when it is first needed, and is the client of it from then on."""

    def __init__(self, client: type[ClientT], starting: Starting) -> None:
        self._class = client
        self._starting = starting
        self._lock = threading.Lock()
        self._client: ClientT | None = None

    def client(self) -> ClientT:
        """Start the server, if that has not been done, and return the client. It blocks meanwhile."""
        with self._lock:
            if self._client is None:
                provider, url, options = self._starting()
                try:
                    self._client = self._class(base_url=url, provider=provider, **options)
                except BaseException:
                    _stop(provider)
                    raise
            return self._client

    def __await__(self) -> Generator[Any, Any, ClientT]:
        return self._awaited().__await__()

    async def _awaited(self) -> ClientT:
        client = await asyncio.to_thread(self.client)
        await client.connect()
        return client

    async def __aenter__(self) -> ClientT:
        return await self._awaited()

    async def __aexit__(self, *exc: object) -> None:
        if self._client is not None:
            await self._client.close()

    def __enter__(self) -> ClientT:
        return self.client().__enter__()

    def __exit__(self, *exc: object) -> None:
        if self._client is not None:
            self._client.__exit__(*exc)

    def sync(self) -> SyncEnvClient[Any, Any, Any]:
        """The client whose methods return results."""
        return self.client().sync()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.client(), name)


def in_docker(image: str, provider: Any, kwargs: dict[str, Any]) -> Starting:
    """Starts a container. Options of the client, `wait_timeout` and those of the container may come together."""
    options = {name: kwargs[name] for name in kwargs.keys() & _CLIENT_OPTIONS}
    started = {name: value for name, value in kwargs.items() if name not in _CLIENT_OPTIONS | {"wait_timeout"}}
    ready_s = float(kwargs.get("wait_timeout", _READY_S))

    def start() -> tuple[Any, str, dict[str, Any]]:
        chosen = provider
        if chosen is None:
            from ors.openenv.providers.docker import LocalDockerProvider

            chosen = LocalDockerProvider()
        try:
            url = chosen.start_container(image, **started)
            chosen.wait_for_ready(url, timeout_s=ready_s)
        except BaseException:
            _stop(chosen)
            raise
        return chosen, url, options

    return start


def from_hub(repo_id: str, use_docker: bool, provider: Any, kwargs: dict[str, Any]) -> Starting:
    """Starts an environment of the hub, `owner/name`: its container image, or its source by uv."""
    owner, separator, name = repo_id.partition("/")
    if not separator or not owner or not name or "/" in name:
        raise ValueError(f"{repo_id!r} is no environment of the hub; write owner/name")
    tag = kwargs.pop("tag", "latest")
    if use_docker:
        subdomain = repo_id.replace("/", "-").replace("_", "-").replace(".", "-").lower()
        return in_docker(f"registry.hf.space/{subdomain}:{tag}", provider, kwargs)
    options = {key: kwargs.pop(key) for key in list(kwargs) if key in _CLIENT_OPTIONS}
    ready_s = float(kwargs.pop("wait_timeout", 60.0))

    def start() -> tuple[Any, str, dict[str, Any]]:
        chosen = provider
        started = dict(kwargs)
        if chosen is None:
            from ors.openenv.providers.process import UVProvider

            made = {key: started.pop(key) for key in ("app", "host", "reload", "project_path") if key in started}
            made.setdefault("project_path", f"git+https://huggingface.co/spaces/{repo_id}")
            chosen = UVProvider(**made)
        try:
            url = chosen.start(**started)
            chosen.wait_for_ready(url, timeout_s=ready_s)
        except BaseException:
            _stop(chosen)
            raise
        return chosen, url, options

    return start


def _stop(provider: Any) -> None:
    if isinstance(provider, ContainerProvider) or hasattr(provider, "stop_container"):
        provider.stop_container()
    else:
        provider.stop()
