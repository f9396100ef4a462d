"""The processes of these tests: servers, and drivers that wait for something to do."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from .peers import clean_environ, peer_python

HERE = Path(__file__).resolve().parent
DRIVERS = {"ors-sdk": HERE / "drivers" / "with_ors_sdk.py", "openreward": HERE / "drivers" / "with_openreward.py"}
START_LIMIT_S = 60
STOP_LIMIT_S = 40
REPORT_LIMIT_S = 200


class ServedEnvironments:
    """Our server with the environments of these tests, in a process of its own; a context manager."""

    def __init__(
        self, log: Path, settings: dict[str, Any] | None = None, environ: dict[str, str] | None = None
    ) -> None:
        self.log = log
        self._arguments = [f"{key}={json.dumps(value)}" for key, value in (settings or {}).items()]
        self._environ = clean_environ(**(environ or {}))
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> ServedEnvironments:
        # a port that was free a moment ago can be taken by the time the server asks for it
        for _ in range(3):
            self.port = _free_port()
            with self.log.open("ab") as log:
                command = [sys.executable, str(HERE / "environments.py"), str(self.port), *self._arguments]
                self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self._environ)
            deadline = time.monotonic() + START_LIMIT_S
            while self.process.poll() is None and time.monotonic() < deadline:
                if self._answers():
                    return self
                time.sleep(0.05)
            self._kill()
            if "address already in use" not in self.tail():
                break
        raise AssertionError(f"the server does not answer; its log ends in:\n{self.tail()}")

    def __exit__(self, *exc: object) -> None:
        code = self.stop()
        if exc[0] is None:
            assert code == 0, f"the server ended with {code} after SIGTERM; its log ends in:\n{self.tail()}"

    def stop(self) -> int | None:
        """Ask the server to end and return its exit code; None when it had to be killed."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._kill()
            return None

    def tail(self, size: int = 4000) -> str:
        """The end of the log."""
        return self.log.read_text(errors="replace")[-size:]

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


class Driver:
    """A peer's client in its own process and virtual environment."""

    def __init__(self, peer: str, log: Path) -> None:
        self.peer, self.log = peer, log
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                [str(peer_python(peer)), str(DRIVERS[peer])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=clean_environ(),
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, url: str, scenario: str, *, sync: bool = False, key: str | None = None, **args: Any) -> None:
        """Begin a scenario; `report` waits for it."""
        assert self._process.stdin is not None
        request = {"url": url, "scenario": scenario, "sync": sync, "key": key, "args": args}
        print(json.dumps(request), file=self._process.stdin, flush=True)

    def report(self, within_s: float = REPORT_LIMIT_S) -> Any:
        """What the client did. Fails when the driver crashed, and kills it when it is not done in time."""
        try:
            line = self._lines.get(timeout=within_s)
        except queue.Empty:
            self.close()
            line = ""
        if not line:
            end = self.log.read_text(errors="replace")[-4000:]
            raise AssertionError(
                f"the client of {self.peer} gave no report within {within_s} s; its log ends in:\n{end}"
            )
        answer = json.loads(line)
        assert "crash" not in answer, f"the client of {self.peer} crashed:\n{answer['crash']}"
        return answer["report"]

    def play(
        self, url: str, scenario: str, *, sync: bool = False, within_s: float = REPORT_LIMIT_S, **args: Any
    ) -> Any:
        """Do a scenario and return its report."""
        self.ask(url, scenario, sync=sync, **args)
        return self.report(within_s)

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process. Left to itself, one of the clients waits for a thread of its own for 5 s."""
        self._process.kill()
        self._process.wait()
        self._reader.join(5)
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        # an empty line says that no more will come
        self._lines.put("")


def log_file(folder: Path, name: str) -> Path:
    """An empty file for a process's output; its own for each process, also when tests run side by side."""
    path = folder / f"{name}-{os.getpid()}.log"
    path.touch()
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
