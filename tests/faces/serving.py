"""A server in a process of its own, as `Server.run` runs it; the program is `run_alone.py`."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from ors.server.openapi import static_document
from served import wait_until

from .wire import Page

__all__ = ["Process"]

PAGE = Page(json.loads(static_document()))
TESTS = Path(__file__).resolve().parents[1]


class Process:
    """The process, a client for it, and what it logged. A context manager that leaves nothing behind."""

    def __init__(self, folder: Path, port: int = 0, **settings: Any) -> None:
        self._port = port
        self.log_file = folder / "log"
        self.output_file = folder / "output"
        with self.log_file.open("w") as log, self.output_file.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "faces.run_alone", json.dumps(settings), str(port)],
                cwd=TESTS,
                stdout=output,
                stderr=log,
            )
        try:
            self.url = wait_until(self._address, within_s=30, what="an address in the log")
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        keys = settings.get("api_keys")
        self.client = httpx.Client(base_url=self.url, timeout=30, headers={"X-API-Key": keys[0]} if keys else None)
        self.client.event_hooks["response"] = [self._judge]

    def _judge(self, answer: httpx.Response) -> None:
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            answer.read()
        PAGE.judge(answer)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        """What it has logged."""
        return self.log_file.read_text()

    def _address(self) -> str | None:
        assert self.process.poll() is None, self.log
        if self._port:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                return None
            return f"http://127.0.0.1:{self._port}"
        found = re.search(r"http://127\.0\.0\.1:\d+", self.log)
        return found[0] if found else None

    def send(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def stop(self) -> int:
        """End it in order; returns its exit code."""
        self.send()
        return self.process.wait(30)
