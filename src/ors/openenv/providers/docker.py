"""Containers of the Docker engine on this machine, or wherever DOCKER_HOST points, over the engine's HTTP API."""

from __future__ import annotations

import http.client
import json
import os
import socket
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ors.openenv.providers.base import ContainerProvider

__all__ = ["LocalDockerProvider"]

_SOCKET = "/var/run/docker.sock"
_TIMEOUT_S = 60.0
_PULL_S = 1800.0
_TAIL = 20


class LocalDockerProvider(ContainerProvider):
    """Starts one container whose server listens on `container_port`.

    host: the engine, `unix:///path` or `tcp://host:port`; by default DOCKER_HOST, else the socket of this machine.
    Raises RuntimeError with the engine's words, ConnectionError where there is no engine.
    """

    def __init__(self, host: str | None = None, container_port: int = 8000) -> None:
        self._host = host or os.environ.get("DOCKER_HOST") or f"unix://{_SOCKET}"
        self._container_port = container_port
        self._id: str | None = None

    def start_container(
        self, image: str, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any
    ) -> str:
        """Start a container and return the address of its server.

        kwargs: whatever else the engine's API takes where a container is created (`HostConfig`, `Cmd`, …).
        """
        if self._id is not None:
            raise RuntimeError("this provider has started a container already; use another provider for another one")
        exposed = f"{self._container_port}/tcp"
        binding = {"HostIp": "127.0.0.1", "HostPort": str(port or "")}
        config = {
            "Image": image,
            "Env": [f"{name}={value}" for name, value in (env_vars or {}).items()],
            "ExposedPorts": {exposed: {}},
            **kwargs,
            "HostConfig": {"PortBindings": {exposed: [binding]}, **kwargs.get("HostConfig", {})},
        }
        status, made = self._ask("POST", "/containers/create", config)
        if status == 404:
            self._pull(image)
            status, made = self._ask("POST", "/containers/create", config)
        self._check(status, made, f"no container could be made of {image!r}")
        self._id = str(made["Id"])
        try:
            status, said = self._ask("POST", f"/containers/{self._id}/start")
            self._check(status, said, f"the container of {image!r} did not start")
            status, about = self._ask("GET", f"/containers/{self._id}/json")
            self._check(status, about, f"nothing is known of the container of {image!r}")
            bound = (about["NetworkSettings"]["Ports"].get(exposed) or [{}])[0].get("HostPort")
            if not bound:
                words = f"the container of {image!r} has no port {exposed} open"
                raise RuntimeError(f"{words}; it said:\n{self.last_words()}")
        except BaseException:
            self.stop_container()
            raise
        return f"http://{self._published_at()}:{bound}"

    def stop_container(self) -> None:
        """Stop and remove the container; a second call does nothing."""
        container, self._id = self._id, None
        if container is not None:
            status, said = self._ask("DELETE", f"/containers/{container}?force=true&v=true")
            if status != 404:
                self._check(status, said, "the container could not be removed")

    def last_words(self) -> str:
        """The last lines that the container wrote."""
        if self._id is None:
            return ""
        query = urlencode({"stdout": 1, "stderr": 1, "tail": _TAIL})
        try:
            _, said = self._ask("GET", f"/containers/{self._id}/logs?{query}", raw=True)
        except ConnectionError:
            return ""
        return _plain(said).decode("utf-8", "replace").strip()

    def _pull(self, image: str) -> None:
        name, _, tag = image.rpartition(":")
        if not name or "/" in tag:
            name, tag = image, "latest"
        query = urlencode({"fromImage": name, "tag": tag})
        status, said = self._ask("POST", f"/images/create?{query}", raw=True, timeout=_PULL_S)
        lines = [json.loads(line) for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
        errors = [line["error"] for line in lines if "error" in line]
        if status != 200 or errors:
            words = errors[0] if errors else lines[-1].get("message", "") if lines else ""
            raise RuntimeError(f"the image {image!r} is not there and cannot be pulled: {words}")

    def _published_at(self) -> str:
        parts = urlsplit(self._host)
        return "127.0.0.1" if parts.scheme == "unix" else parts.hostname or "127.0.0.1"

    def _ask(
        self, method: str, path: str, body: Any = None, *, raw: bool = False, timeout: float = _TIMEOUT_S
    ) -> tuple[int, Any]:
        connection = self._connection(timeout)
        try:
            sent = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, quote(path, safe="/?&=:%"), body=sent, headers=headers)
            answer = connection.getresponse()
            said = answer.read()
        except OSError as exc:
            raise ConnectionError(
                f"no Docker engine answers at {self._host}: {exc}; start Docker, or set DOCKER_HOST"
            ) from exc
        finally:
            connection.close()
        if raw:
            return answer.status, said
        try:
            return answer.status, json.loads(said) if said else {}
        except ValueError:
            return answer.status, {"message": said.decode("utf-8", "replace")}

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        parts = urlsplit(self._host)
        if parts.scheme == "unix":
            return _UnixConnection(parts.path, timeout)
        if parts.scheme in ("tcp", "http") and parts.hostname:
            return http.client.HTTPConnection(parts.hostname, parts.port or 2375, timeout=timeout)
        raise ValueError(f"the Docker engine's address {self._host!r} is neither unix:///path nor tcp://host:port")

    def _check(self, status: int, said: Any, what: str) -> None:
        if status >= 400:
            words = said.get("message", said) if isinstance(said, dict) else said
            raise RuntimeError(f"{what}: {words} ({status} from the Docker engine)")


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket in the file system."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _plain(said: bytes) -> bytes:
    """The log of a container without the frames that the engine puts around each piece."""
    out, at = [], 0
    while at + 8 <= len(said) and said[at] in (0, 1, 2) and said[at + 1 : at + 4] == b"\0\0\0":
        size = int.from_bytes(said[at + 4 : at + 8], "big")
        out.append(said[at + 8 : at + 8 + size])
        at += 8 + size
    return b"".join(out) if out else said
