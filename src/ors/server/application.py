"""The ASGI application: it makes the host when it starts, or, where nobody starts it, when the first request comes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

from ors.core.ports import Host, Offering
from ors.errors import SettingsError
from ors.faces.http import Receive, Route, Send
from ors.faces.openenv import FaceOptions, OpenEnvFace
from ors.faces.ors import ORSFace
from ors.faces.sockets import SocketLimits
from ors.faces.tasks import TaskFace
from ors.hosts.local import HostOptions, LocalHost
from ors.hosts.threaded import ThreadedHost
from ors.runtime import RuntimeOptions
from ors.server.auth import Keys
from ors.server.dispatch import Dispatcher
from ors.server.system import SystemFace
from ors.settings import Settings

__all__ = ["Application", "host_options"]

logger = logging.getLogger("ors.server")

_RENAME = "override name(), or for OpenEnv's give create_app() the env_name"


class Application:
    """Offerings and settings → an ASGI application."""

    def __init__(
        self,
        make_offerings: Callable[[], Sequence[Offering]],
        settings: Settings,
        keys: Sequence[str],
        *,
        health: str = "ok",
        seeds: bool = True,
    ) -> None:
        self.settings = settings
        self._health = health
        self._seeds = seeds
        self._make_offerings = make_offerings
        self._offerings = make_offerings()
        self._specs = {offering.spec.name.lower(): offering.spec for offering in self._offerings}
        self._keys = Keys(keys)
        self._dispatcher: Dispatcher | None = None
        self.openenv: OpenEnvFace | None = None
        self._lock = threading.Lock()
        self.host: Any = None
        self._document: bytes | None = None
        self.describe: Callable[[], bytes] = self.document
        self._check_names()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await (self._dispatcher or self._late())(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await (self._dispatcher or self._late()).socket(scope, receive, send)

    @property
    def names(self) -> frozenset[str]:
        """The names of the environments, in lower case."""
        return frozenset(self._specs)

    def knows(self, path: str) -> bool:
        """Whether a path belongs to the table of routes."""
        return (self._dispatcher or self._late()).knows(path)

    def knows_socket(self, path: str) -> bool:
        """Whether a path is one of a WebSocket of the table."""
        return (self._dispatcher or self._late()).knows_socket(path)

    def socket_paths(self) -> list[str]:
        """The paths of WebSockets."""
        host: Any = None
        return [route.path for route in OpenEnvFace(host).sockets()]

    async def start(self) -> None:
        """Make the host on the running event loop."""
        if self._dispatcher is None:
            self.host = await self._make_host()
            self._assemble()

    async def stop(self) -> None:
        """Drain within the grace time, then close the host."""
        if self.host is not None:
            host, self.host, self._dispatcher = self.host, None, None
            await host.drain(self.settings.shutdown_grace)
            await host.close()

    def _late(self) -> Dispatcher:
        """Nobody sent lifespan events (a mounted app, a test in memory): the host gets an event loop of its own."""
        with self._lock:
            if self._dispatcher is None:
                self.host = ThreadedHost(self._make_host)
                self._assemble()
        assert self._dispatcher is not None
        return self._dispatcher

    async def _make_host(self) -> Host:
        if self.settings.host_process == "spawned":
            from ors.hosts.remote import RemoteHost

            return await RemoteHost.spawn(self._make_offerings, host_options(self.settings))
        return LocalHost(self._offerings, host_options(self.settings))

    def _assemble(self) -> None:
        self.openenv = OpenEnvFace(self.host, face_options(self.settings, self._seeds))
        self._dispatcher = Dispatcher(
            self.routes(self.host, self.openenv),
            self.host.offerings(),
            self._keys,
            max_body=self.settings.max_body,
            allowed_origins=self.settings.allowed_origins,
            sockets=self.openenv.sockets(),
            limits=SocketLimits(self.settings.max_message, self.settings.socket_ping, self.settings.session_idle),
        )

    def routes(self, host: Host, openenv: OpenEnvFace | None = None) -> list[Route]:
        """The table of every route over a host."""
        settings = self.settings
        id_key = settings.id_key.encode() if settings.id_key else None
        face = ORSFace(host, max_streams=settings.max_streams, id_key=id_key, retry_after=settings.retry_after)
        openenv = openenv or OpenEnvFace(host, face_options(settings, self._seeds))
        return [
            *SystemFace(host, lambda: self.describe(), self._health).routes(),
            *face.routes(),
            *TaskFace(host, seeds=self._seeds).routes(),
            *openenv.routes(),
        ]

    def document(self) -> bytes:
        """The OpenAPI description of every route."""
        if self._document is None:
            from ors.server.openapi import document

            host: Any = self.host
            self._document = document(self.routes(host), self._specs, bool(self._keys))
        return self._document

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        message = await receive()
        assert message["type"] == "lifespan.startup"
        try:
            await self.start()
        except Exception as exc:
            logger.exception("the server cannot start")
            await send({"type": "lifespan.startup.failed", "message": str(exc)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        try:
            await self.stop()
        finally:
            await send({"type": "lifespan.shutdown.complete"})

    def _check_names(self) -> None:
        if not self._specs:
            raise SettingsError("a server needs at least one environment")
        if len(self._specs) < len(self._offerings):
            names = [offering.spec.name for offering in self._offerings]
            twice = next(name for name in names if [n.lower() for n in names].count(name.lower()) > 1)
            raise SettingsError(f"two environments are named '{twice}' (names ignore case); in one of them {_RENAME}")
        paths = [route.path.lower().split("/")[1:] for route in self.routes(None)]  # type: ignore[arg-type]
        for name, spec in self._specs.items():
            # those of OpenEnv exist under names like "tools"; only what stands before more would hide one
            reserved = any(name == first and (rest or spec.kind == "tools") for first, *rest in paths)
            if reserved or "/" in name or not name:
                raise SettingsError(
                    f"an environment cannot be named '{spec.name}': that is a route of the server; {_RENAME}"
                )


def face_options(settings: Settings, seeds: bool) -> FaceOptions:
    """The settings that OpenEnv's face needs."""
    return FaceOptions(
        mode=settings.openenv_mode,
        strict_reset=settings.strict_reset,
        socket_keep_s=settings.socket_keep,
        http_keep_s=settings.http_keep,
        cookie=settings.session_cookie,
        seeds=seeds,
    )


def host_options(settings: Settings) -> HostOptions:
    """The settings that an owner process needs."""
    return HostOptions(
        idle_s=settings.session_idle,
        call_ceiling_s=settings.call_ceiling,
        max_sessions=settings.max_sessions,
        max_calls=settings.max_calls,
        result_keep_s=settings.result_keep,
        result_memory=settings.result_memory,
        result_disk=settings.result_disk,
        call_timeout_s=settings.call_timeout,
        setup_timeout_s=settings.setup_timeout,
        teardown_timeout_s=settings.teardown_timeout,
        retry_after_s=settings.retry_after,
        max_zombies=settings.max_zombies,
        capture_output=settings.capture_output,
        runtime=RuntimeOptions(
            grace_s=settings.cut_grace,
            blocked_warn_s=settings.blocked_warning,
            blocked_limit_s=settings.blocked_limit,
            max_threads=settings.max_threads,
        ),
    )
