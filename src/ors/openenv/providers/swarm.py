"""Services of a Docker swarm; and what is said of clusters."""

from __future__ import annotations

import contextlib
import functools
import shlex
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ors.openenv.providers.base import ContainerProvider, at_last
from ors.openenv.providers.engine import Engine

__all__ = ["DockerSwarmProvider", "KubernetesProvider"]

_PORT = 8000
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class DockerSwarmProvider(ContainerProvider):
    """Starts a service whose replicas share one port. A client's session is at the replica that its socket came to.

    auto_init_swarm: make a swarm of this engine where it is in none. overlay_network: the service is in it; made where
    it is not there. host: the engine, as of LocalDockerProvider. Raises RuntimeError with the engine's words,
    ConnectionError where there is no engine.
    """

    def __init__(
        self, *, auto_init_swarm: bool = True, overlay_network: str | None = None, host: str | None = None
    ) -> None:
        self._engine = Engine(host)
        self._network = overlay_network
        self._id: str | None = None
        self._removing: Callable[[], Any] | None = None
        self._join(auto_init_swarm)
        if overlay_network is not None:
            self._make_network(overlay_network)

    def start_container(
        self, image: str, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any
    ) -> str:
        """Start a service and return its address.

        kwargs: `replicas` (2), `cpu_limit` (cores), `memory_limit` (bytes, or a text as "512m"), `constraints`,
        `labels`, `command`.
        """
        if self._id is not None:
            raise RuntimeError("this provider has started a service already; use another provider for another one")
        name = f"{image.rpartition('/')[2].partition(':')[0].partition('@')[0]}-{uuid.uuid4().hex[:12]}"
        made = self._engine.must(
            "POST",
            "/services/create",
            self._service(name, image, port, env_vars or {}, **kwargs),
            what=f"no service could be made of {image!r}",
        )
        self._id = str(made["ID"])
        self._removing = at_last(self, functools.partial(_remove_quietly, self._engine, self._id))
        try:
            about = self._engine.must("GET", f"/services/{self._id}", what=f"nothing is known of the service {name!r}")
            ports = about.get("Endpoint", {}).get("Ports") or about.get("Spec", {}).get("EndpointSpec", {}).get("Ports")
            bound = (ports or [{}])[0].get("PublishedPort")
            if not bound:
                raise RuntimeError(f"the service {name!r} has no port published")
        except BaseException:
            with contextlib.suppress(RuntimeError, ConnectionError):
                self.stop_container()
            raise
        return f"http://{self._engine.published_at()}:{bound}"

    def stop_container(self) -> None:
        """Remove the service; the swarm stays. A second call does nothing."""
        service, self._id = self._id, None
        if service is not None:
            try:
                _remove(self._engine, service)
            except BaseException:
                self._id = service
                raise
            self._removing = None

    def alive(self) -> bool:
        """Whether the service is there."""
        return self._id is not None

    def last_words(self) -> str:
        """The last lines that the replicas wrote."""
        return self._engine.logs(f"/services/{self._id}") if self._id is not None else ""

    def _service(
        self,
        name: str,
        image: str,
        port: int | None,
        env_vars: Mapping[str, str],
        *,
        replicas: int = 2,
        cpu_limit: float | str | None = None,
        memory_limit: int | str | None = None,
        constraints: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        command: str | Sequence[str] | None = None,
    ) -> dict[str, Any]:
        limits: dict[str, int] = {}
        if cpu_limit is not None:
            limits["NanoCPUs"] = int(float(cpu_limit) * 1e9)
        if memory_limit is not None:
            limits["MemoryBytes"] = _bytes(memory_limit)
        container: dict[str, Any] = {"Image": image, "Env": [f"{key}={value}" for key, value in env_vars.items()]}
        if command is not None:
            container["Args"] = shlex.split(command) if isinstance(command, str) else list(command)
        return {
            "Name": name,
            "Labels": dict(labels or {}),
            "TaskTemplate": {
                "ContainerSpec": container,
                "Resources": {"Limits": limits},
                "Placement": {"Constraints": list(constraints)},
                "Networks": [{"Target": self._network}] if self._network else [],
            },
            "Mode": {"Replicated": {"Replicas": max(1, int(replicas))}},
            "EndpointSpec": {"Ports": [{"Protocol": "tcp", "TargetPort": _PORT, "PublishedPort": port or 0}]},
        }

    def _join(self, make: bool) -> None:
        about = self._engine.must("GET", "/info", what="the engine says nothing of itself")
        state = about.get("Swarm", {}).get("LocalNodeState", "")
        if state == "active":
            return
        if not make:
            raise RuntimeError(f"this engine is in no swarm (it says {state!r}): docker swarm init")
        body = {"ListenAddr": "0.0.0.0:2377", "AdvertiseAddr": "127.0.0.1"}
        # somebody else may have made one meanwhile
        self._engine.must("POST", "/swarm/init", body, what="no swarm could be made", but=(503,))

    def _make_network(self, name: str) -> None:
        status, _ = self._engine.ask("GET", f"/networks/{name}")
        if status == 404:
            body = {"Name": name, "Driver": "overlay", "Attachable": True}
            self._engine.must("POST", "/networks/create", body, what=f"no network {name!r} could be made", but=(409,))


class KubernetesProvider(ContainerProvider):
    """There is none: a cluster's servers are started with the cluster's own means, and reached by their address."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "there is no provider for Kubernetes: deploy the environment's image with a Service, and give clients its "
            "address as base_url"
        )

    def start_container(
        self, image: str, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any
    ) -> str:
        """Never called."""
        raise NotImplementedError

    def stop_container(self) -> None:
        """Never called."""


def _bytes(limit: int | str) -> int:
    text = str(limit).strip().lower()
    number = text.rstrip("bkmgti")
    unit = text[len(number) :].replace("i", "")
    unit = unit.removesuffix("b") if len(unit) > 1 else unit
    try:
        return int(float(number) * _UNITS[unit])
    except (KeyError, ValueError):
        raise ValueError(f"memory_limit is no number of bytes: {limit!r}; write 536870912 or '512m'") from None


def _remove(engine: Engine, service: str) -> None:
    engine.must("DELETE", f"/services/{service}", what="the service could not be removed", but=(404,))


def _remove_quietly(engine: Engine, service: str) -> None:
    with contextlib.suppress(RuntimeError, ConnectionError):
        _remove(engine, service)
