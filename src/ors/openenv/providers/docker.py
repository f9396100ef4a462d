"""Containers of the Docker engine on this machine, or wherever DOCKER_HOST points."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from ors.openenv.providers.base import ContainerProvider, at_last
from ors.openenv.providers.engine import Engine

__all__ = ["LocalDockerProvider"]


class LocalDockerProvider(ContainerProvider):
    """Starts one container whose server listens on `container_port`.

    host: the engine, `unix:///path` or `tcp://host:port`; by default DOCKER_HOST, else the socket of this machine. A
    container that nobody has stopped is removed at the end of this process. Raises RuntimeError with the engine's
    words, ConnectionError where there is no engine.
    """

    def __init__(self, host: str | None = None, container_port: int = 8000) -> None:
        self._engine = Engine(host)
        self._container_port = container_port
        self._id: str | None = None
        self._removing: Callable[[], Any] | None = None

    def start_container(
        self, image: str, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any
    ) -> str:
        """Start a container and return the address of its server. An image that is not there is pulled.

        kwargs: whatever else the engine's API takes where a container is created (`HostConfig`, `Cmd`, …).
        """
        if self._id is not None:
            raise RuntimeError("this provider has started a container already; use another provider for another one")
        exposed = f"{self._container_port}/tcp"
        binding = {"HostIp": "127.0.0.1" if self._engine.host.startswith("unix:") else "", "HostPort": str(port or "")}
        config = {
            "Image": image,
            "Env": [f"{name}={value}" for name, value in (env_vars or {}).items()],
            "ExposedPorts": {exposed: {}},
            **kwargs,
            "HostConfig": {"PortBindings": {exposed: [binding]}, **kwargs.get("HostConfig", {})},
        }
        status, made = self._engine.ask("POST", "/containers/create", config)
        if status == 404:
            self._engine.pull(image)
        if status >= 400:
            what = f"no container could be made of {image!r}"
            made = self._engine.must("POST", "/containers/create", config, what=what)
        self._id = str(made["Id"])
        self._removing = at_last(self, functools.partial(_remove_quietly, self._engine, self._id))
        try:
            where = f"/containers/{self._id}"
            self._engine.must("POST", f"{where}/start", what=f"the container of {image!r} did not start")
            about = self._engine.must("GET", f"{where}/json", what=f"nothing is known of the container of {image!r}")
            ports = about.get("NetworkSettings", {}).get("Ports") or {}
            bound = ((ports.get(exposed) or [{}])[0] or {}).get("HostPort")
            if not bound:
                words = f"the container of {image!r} has no port {exposed} open"
                raise RuntimeError(f"{words}; it said:\n{self.last_words()}")
        except BaseException:
            with contextlib.suppress(RuntimeError, ConnectionError):  # the first failure is the one to be told
                self.stop_container()
            raise
        return f"http://{self._engine.published_at()}:{bound}"

    def stop_container(self) -> None:
        """Stop and remove the container; a second call does nothing."""
        container, self._id = self._id, None
        if container is not None:
            try:
                _remove(self._engine, container)
            except BaseException:
                self._id = container  # it may still be there
                raise
            self._removing = None

    def alive(self) -> bool:
        """Whether the container runs."""
        if self._id is None:
            return False
        status, about = self._engine.ask("GET", f"/containers/{self._id}/json")
        if status == 404:
            return False
        # an engine that cannot say just now is no reason to give up
        return status >= 400 or bool(about.get("State", {}).get("Running", True))

    def last_words(self) -> str:
        """The last lines that the container wrote."""
        return self._engine.logs(f"/containers/{self._id}") if self._id is not None else ""


def _remove(engine: Engine, container: str) -> None:
    path = f"/containers/{container}?force=true&v=true"
    engine.must("DELETE", path, what="the container could not be removed", but=(404, 409))


def _remove_quietly(engine: Engine, container: str) -> None:
    with contextlib.suppress(RuntimeError, ConnectionError):
        _remove(engine, container)
