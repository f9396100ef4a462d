"""A client whose server has yet to be started: `await` it, use it with `with`, call `.sync()`, or just use it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from ors.openenv.clients.env_client import EnvClient
    from ors.openenv.clients.sync_client import SyncEnvClient

__all__ = ["CLIENT_OPTIONS", "Launch", "Starting", "from_hub", "in_docker"]

ClientT = TypeVar("ClientT", bound="EnvClient[Any, Any, Any]")

_READY_S = 30.0
_BUILT_S = 60.0
_STOP_S = 10.0
CLIENT_OPTIONS = frozenset(
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
"""What is said of a client, where it stands beside what is said of its server."""


class Starting:
    """A server that is being started, and stopped again where that fails or is given up.

    make: the provider. begin: starts the server and says its address. wait: until it is ready.
    """

    def __init__(
        self, make: Callable[[], Any], begin: Callable[[Any], str], wait: Callable[[Any, str], object]
    ) -> None:
        self._make = make
        self._begin = begin
        self._wait = wait
        self._provider: Any = None
        self._given_up = False

    def run(self) -> tuple[Any, str]:
        """Start it: the provider and the address. Raises what the provider raises; nothing is left then."""
        self._check()
        provider = self._provider = self._make()
        try:
            self._check()
            url = str(self._begin(provider))
            self._check()
            self._wait(provider, url)
            self._check()
        except BaseException:
            _stop(provider)
            raise
        return provider, url

    def give_up(self) -> None:
        """Stop it, from another thread; what runs there ends soon."""
        self._given_up = True
        if self._provider is not None:
            _stop(self._provider)

    def _check(self) -> None:
        if self._given_up:
            raise RuntimeError("this launch was given up; make another one")


class Launch(Generic[ClientT]):
    """Starts a server once, when it is first needed, and is the client of it from then on.

    Whatever goes wrong on the way, also where it is cancelled, the server is stopped again.
    """

    def __init__(self, client: type[ClientT], starting: Starting, options: dict[str, Any]) -> None:
        self._class = client
        self._starting = starting
        self._options = options
        self._lock = threading.Lock()
        self._client: ClientT | None = None

    def __repr__(self) -> str:
        if self._client is not None:
            return f"<a launched {self._client!r}>"
        return f"<a {self._class.__name__} whose server is not started yet>"

    def client(self) -> ClientT:
        """Start the server, if that has not been done, and return the client. It blocks meanwhile."""
        with self._lock:
            if self._client is None:
                provider, url = self._starting.run()
                try:
                    self._client = self._class(base_url=url, provider=provider, **self._options)
                except BaseException:
                    _stop(provider)
                    raise
            return self._client

    def __await__(self) -> Generator[Any, Any, ClientT]:
        return self._connected().__await__()

    async def _connected(self) -> ClientT:
        starting = asyncio.ensure_future(asyncio.to_thread(self.client))
        try:
            client = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_looked_at)
            # the thread goes on, and nobody is there for what it starts
            await asyncio.to_thread(self._starting.give_up)
            await asyncio.wait({starting}, timeout=_STOP_S)
            raise
        try:
            connecting = client.connect()
            if inspect.isawaitable(connecting):
                await connecting
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(_closed(client)))
            raise
        return client

    async def __aenter__(self) -> ClientT:
        return await self._connected()

    async def __aexit__(self, *exc: object) -> None:
        if self._client is not None:
            await _closed(self._client)

    def __enter__(self) -> ClientT:
        client = self.client()
        try:
            return client.__enter__()
        except BaseException:
            client.__exit__(None, None, None)
            raise

    def __exit__(self, *exc: object) -> None:
        if self._client is not None:
            self._client.__exit__(*exc)

    def sync(self) -> SyncEnvClient[Any, Any, Any]:
        """The client whose methods return results."""
        return self.client().sync()

    def __getattr__(self, name: str) -> Any:
        # whoever looks for special or private names (a notebook, a debugger, copy) does not mean to start a server
        if name.startswith("__") or (name.startswith("_") and not hasattr(self.__dict__.get("_class"), name)):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.client(), name)


def in_docker(
    image: str, provider: Any, kwargs: dict[str, Any], ready_s: float = _READY_S
) -> tuple[Starting, dict[str, Any]]:
    """What starts a container, and the client's options, from what was said of both; `wait_timeout` may be among it."""
    options, started, ready_s = _sorted(kwargs, ready_s)

    def make() -> Any:
        if provider is not None:
            return provider
        from ors.openenv.providers.docker import LocalDockerProvider

        return LocalDockerProvider()

    return Starting(
        make,
        lambda chosen: chosen.start_container(image, **started),
        lambda chosen, url: chosen.wait_for_ready(url, timeout_s=ready_s),
    ), options


def from_hub(repo_id: str, use_docker: bool, provider: Any, kwargs: dict[str, Any]) -> tuple[Starting, dict[str, Any]]:
    """What starts an environment of the hub, `owner/name`: its container image, or its source by uv."""
    from ors.openenv.clients.hub import image_of, repository, source_of

    repo_id = repository(repo_id)
    kwargs = dict(kwargs)
    tag = kwargs.pop("tag", "latest")
    if use_docker:
        return in_docker(image_of(repo_id, tag), provider, kwargs)
    options, started, ready_s = _sorted(kwargs, _BUILT_S)
    made = {key: started.pop(key) for key in ("app", "host", "project_path", "reload") if key in started}
    made.setdefault("project_path", source_of(repo_id))

    def make() -> Any:
        if provider is not None:
            return provider
        from ors.openenv.providers.process import UVProvider

        return UVProvider(**made)

    return Starting(
        make,
        lambda chosen: chosen.start(**started),
        lambda chosen, url: chosen.wait_for_ready(timeout_s=ready_s),
    ), options


def _sorted(kwargs: dict[str, Any], ready_s: float) -> tuple[dict[str, Any], dict[str, Any], float]:
    options = {name: value for name, value in kwargs.items() if name in CLIENT_OPTIONS}
    started = {name: value for name, value in kwargs.items() if name not in CLIENT_OPTIONS}
    return options, started, float(started.pop("wait_timeout", ready_s))


def _stop(provider: Any) -> None:
    stop = getattr(provider, "stop_container", None) or provider.stop
    stop()


async def _closed(client: Any) -> None:
    closing = client.close()
    if inspect.isawaitable(closing):
        await closing


def _looked_at(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()
