"""A small stand-in of the Docker engine: its HTTP API over a socket in the file system. Containers are processes.

What of the API the providers use is here as the engine's reference has it (API 1.44): containers, images, services,
swarm, networks. A container's port is wherever its process listens.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socketserver
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ors.openenv.providers.base import free_port

PROJECT = Path(__file__).with_name("project")


@dataclass
class Container:
    """A container: `process` while it runs."""

    config: dict[str, Any]
    log: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def inner(self) -> str:
        return str(next(iter(self.config.get("ExposedPorts", {"8000/tcp": {}}))))

    def start(self) -> None:
        host = self.config.get("HostConfig", {}).get("PortBindings", {}).get(self.inner, [{}])[0]
        self.port = int(host.get("HostPort") or 0) or free_port()
        environ = dict(line.split("=", 1) for line in self.config.get("Env", []))
        command = [sys.executable, "-m", "uvicorn", "server.app:app", "--port", str(self.port), "--log-level", "error"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=PROJECT, stdout=log, stderr=log, env={**os.environ, **environ}, start_new_session=True
            )

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


@dataclass
class Engine:
    """The engine. asked: the requests that came, `METHOD /path`. broken: paths that are answered with 500."""

    folder: Path
    images: set[str] = field(default_factory=lambda: {"echo:1"})
    registry: set[str] = field(default_factory=set)
    containers: dict[str, Container] = field(default_factory=dict)
    services: dict[str, Container] = field(default_factory=dict)
    networks: set[str] = field(default_factory=set)
    swarm: str = "inactive"
    asked: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    created: threading.Event = field(default_factory=threading.Event)
    made: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def host(self) -> str:
        return f"unix://{self.folder}/engine.sock"

    def __enter__(self) -> Engine:
        engine = self

        class Handler(_Handler):
            def do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                self.say(*engine.answer(self.command, self.path, body))

            do_GET = do_POST = do_DELETE = do

        self._server = _Listening(f"{self.folder}/engine.sock", Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for container in [*self.containers.values(), *self.services.values()]:
            container.kill()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append(f"{method} {parts.path}")
        for pattern in self.broken:
            if re.fullmatch(pattern, f"{method} {parts.path}"):
                return 500, {"message": "the engine is out of order"}
        match [method, *parts.path.strip("/").split("/")]:
            case ["POST", "containers", "create"]:
                if body["Image"] not in self.images:
                    return 404, {"message": f"No such image: {body['Image']}"}
                return 201, {"Id": self._keep(self.containers, body), "Warnings": []}
            case ["POST", "images", "create"]:
                return self._pull(":".join(value for name in ("fromImage", "tag") if (value := query.get(name))))
            case ["GET", "info"]:
                return 200, {"Swarm": {"LocalNodeState": self.swarm}}
            case ["POST", "swarm", "init"]:
                self.swarm = "active"
                return 200, "node"
            case ["GET", "networks", name]:
                return (200, {"Name": name}) if name in self.networks else (404, {"message": "no such network"})
            case ["POST", "networks", "create"]:
                self.networks.add(body["Name"])
                return 201, {"Id": body["Name"]}
            case ["POST", "services", "create"]:
                container = body["TaskTemplate"]["ContainerSpec"]
                port = body["EndpointSpec"]["Ports"][0]["PublishedPort"]
                binding = {"HostConfig": {"PortBindings": {"8000/tcp": [{"HostPort": str(port or "")}]}}}
                made = self._keep(self.services, {**body, **binding, "Env": container["Env"]})
                self.services[made].start()
                return 201, {"ID": made}
            case [_, "containers" | "services" as kind, which, *rest]:
                known = self.containers if kind == "containers" else self.services
                with self._lock:  # what is being started is removed after it
                    if which not in known:
                        return 404, {"message": f"No such {kind[:-1]}: {which}"}
                    return self._about(method, known, which, rest)
        return 400, {"message": f"not known here: {method} {path}"}

    def _about(self, method: str, known: dict[str, Container], which: str, rest: list[str]) -> tuple[int, Any]:
        container = known[which]
        match [method, *rest]:
            case ["POST", "start"]:
                container.start()
                return 204, b""
            case ["GET", "json"]:
                running = container.process is not None and container.process.poll() is None
                bound = [{"HostIp": "127.0.0.1", "HostPort": str(container.port)}]
                ports = {container.inner: bound if container.port else None}
                return 200, {"Id": which, "State": {"Running": running}, "NetworkSettings": {"Ports": ports}}
            case ["GET", "logs"]:
                # as an engine frames it, in two pieces of different streams
                said = container.log.read_bytes() if container.log.exists() else b""
                half = len(said) // 2
                pieces = ((1, said[:half]), (2, said[half:]))
                return 200, b"".join(bytes([kind, 0, 0, 0]) + len(text).to_bytes(4) + text for kind, text in pieces)
            case ["GET"]:
                return 200, {"ID": which, "Endpoint": {"Ports": [{"PublishedPort": container.port}]}}
            case ["DELETE"]:
                container.kill()
                del known[which]
                return 204, b""
        return 400, {"message": f"not known here: {method} {rest}"}

    def _keep(self, known: dict[str, Container], config: dict[str, Any]) -> str:
        self.made += 1
        name = f"{self.made:064x}"
        known[name] = Container(config, self.folder / f"{name}.log")
        self.created.set()
        return name

    def _pull(self, image: str) -> tuple[int, Any]:
        lines = [{"status": f"Pulling {image}"}]
        if image in self.registry:
            self.images.add(image)
            lines.append({"status": "Downloaded"})
        else:
            # the engine answers 200 first, and tells of the failure after it
            lines.append({"errorDetail": {"message": "denied"}, "error": f"pull access denied for {image}"})
        return 200, b"".join(json.dumps(line).encode() + b"\r\n" for line in lines)


class _Listening(socketserver.ThreadingUnixStreamServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that has left need not be answered
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def say(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def address_string(self) -> str:
        return "a client"

    def log_message(self, format: str, *args: Any) -> None:
        pass
