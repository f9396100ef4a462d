"""Serving an example from a process of its own, on a free port of this machine only."""

from __future__ import annotations

import http.client
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Self

HOST = "127.0.0.1"


def load(path: Path) -> ModuleType:
    """Import an example from its file, under a name that hides no installed package."""
    name = f"example_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


class ServerProcess:
    """A server for the environments of one file, starting; after a `with` block it is gone."""

    launcher = __file__

    def __init__(self, path: Path) -> None:
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed at the end
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port = probe.getsockname()[1]
        self.address = (HOST, port)
        self.url = f"http://{HOST}:{port}"
        self.process = subprocess.Popen(
            [sys.executable, self.launcher, str(path), str(port)],
            # With the defaults: what is set for other servers (keys, limits) is not meant for this one.
            env={name: value for name, value in os.environ.items() if not name.startswith("ORS_")},
            # The server lives as long as its end of this pipe is open: it outlives us by no way of dying.
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            # Ctrl-C in the terminal is for us; we stop the server when we have told it what we have to tell.
            start_new_session=True,
        )

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        """Wait until the server answers. Raises RuntimeError with its log when it does not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            if self._is_healthy():
                return
            time.sleep(0.05)
        raise RuntimeError(f"the server did not start:\n{self.log_text()}")

    def _is_healthy(self) -> bool:
        connection = http.client.HTTPConnection(*self.address, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def log_text(self) -> str:
        """What the server has written so far."""
        self.log.seek(0)
        return self.log.read()

    def stop(self) -> int:
        """Ask the server to end, insist if it does not, and return its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.log.close()


def end_with_parent() -> None:
    """End this server when the process that started it is gone."""
    threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end() -> None:
    os.read(0, 1)  # nothing is ever sent: this returns when the other end is closed, however that came about
    os.kill(os.getpid(), signal.SIGTERM)


def main(path: str, port: str) -> None:
    """Serve a file's `ENVIRONMENTS`: this is what the new process runs."""
    from ors import Server

    end_with_parent()
    Server(load(Path(path)).ENVIRONMENTS).run(host=HOST, port=int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
