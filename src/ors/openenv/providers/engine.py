"""The Docker engine's HTTP API, over a socket in the file system or over TCP."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

__all__ = ["Engine"]

_SOCKET = "/var/run/docker.sock"
_TIMEOUT_S = 60.0
_PULL_S = 1800.0
_TAIL = 20


class Engine:
    """An engine: `unix:///path` or `tcp://host:port`; by default DOCKER_HOST, else the socket of this machine.

    Raises RuntimeError with the engine's words, ConnectionError where there is no engine.
    """

    def __init__(self, host: str | None = None) -> None:
        self.host = host or os.environ.get("DOCKER_HOST") or f"unix://{_SOCKET}"

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        status, said = self._ask(method, path, body, _TIMEOUT_S)
        try:
            return status, json.loads(said) if said else {}
        except ValueError:
            return status, {"message": said.decode("utf-8", "replace")}

    def must(self, method: str, path: str, body: Any = None, *, what: str, but: Sequence[int] = ()) -> Any:
        """The JSON of an answer. Raises RuntimeError that begins with `what` for any error but those statuses."""
        status, said = self.ask(method, path, body)
        if status >= 400 and status not in but:
            words = said.get("message", said) if isinstance(said, dict) else said
            raise RuntimeError(f"{what}: {words} ({status} from the Docker engine)")
        return said

    def logs(self, path: str) -> str:
        """The last lines of a log; nothing where there is none to be had."""
        query = urlencode({"stdout": 1, "stderr": 1, "tail": _TAIL})
        try:
            status, said = self._ask("GET", f"{path}/logs?{query}", None, _TIMEOUT_S)
        except ConnectionError:
            return ""
        return _plain(said).decode("utf-8", "replace").strip() if status == 200 else ""

    def pull(self, image: str) -> None:
        """Have the engine fetch an image."""
        query = urlencode({"fromImage": image, **({} if _versioned(image) else {"tag": "latest"})})
        status, said = self._ask("POST", f"/images/create?{query}", None, _PULL_S)
        words = ""
        for line in said.decode("utf-8", "replace").splitlines():
            try:
                about = json.loads(line)
            except ValueError:
                words = words or line
                continue
            if isinstance(about, dict):
                words = words or str(about.get("error") or about.get("message") or "")
        if status != 200 or words:
            raise RuntimeError(f"the image {image!r} is not there and cannot be pulled: {words or status}")

    def published_at(self) -> str:
        """The host at which ports of the engine's machine are reached."""
        parts = urlsplit(self.host)
        return "127.0.0.1" if parts.scheme == "unix" else parts.hostname or "127.0.0.1"

    def _ask(self, method: str, path: str, body: Any, timeout: float) -> tuple[int, bytes]:
        connection = self._connection(timeout)
        try:
            sent = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, quote(path, safe="/?&=:%+"), body=sent, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as exc:
            why = str(exc) or type(exc).__name__
            raise ConnectionError(
                f"no Docker engine answers at {self.host}: {why}; start Docker, or set DOCKER_HOST"
            ) from exc
        finally:
            connection.close()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        parts = urlsplit(self.host)
        if parts.scheme == "unix":
            return _UnixConnection(parts.path, timeout)
        if parts.scheme in ("tcp", "http") and parts.hostname:
            return http.client.HTTPConnection(parts.hostname, parts.port or 2375, timeout=timeout)
        raise ValueError(f"the Docker engine's address {self.host!r} is neither unix:///path nor tcp://host:port")


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket in the file system."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _versioned(image: str) -> bool:
    return "@" in image or ":" in image.rpartition("/")[2]


def _plain(said: bytes) -> bytes:
    """A log without the frames that the engine puts around each piece, unless it has a terminal."""
    out, at = [], 0
    while at + 8 <= len(said) and said[at] in (0, 1, 2) and said[at + 1 : at + 4] == b"\0\0\0":
        size = int.from_bytes(said[at + 4 : at + 8], "big")
        out.append(said[at + 8 : at + 8 + size])
        at += 8 + size
    return b"".join(out) if out else said
