"""Commands run as a person runs them: in a process of their own, watched through what they write."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

ADDITION = '''
from ors import Environment, ToolOutput, tool

class {name}(Environment):
    @classmethod
    def list_splits(cls):
        return ["train"]

    @classmethod
    def list_tasks(cls, split):
        return [{{"a": 1, "b": 2}}]

    def get_prompt(self):
        return "What is 1 + 2?"

    @tool
    def submit(self, answer: int) -> ToolOutput:
        """Submit the sum."""
        print("graded", answer)
        return ToolOutput(blocks="{answer}", reward=float(answer == 3), finished=True)
'''


def addition(name: str = "Addition", answer: str = "Thanks.") -> str:
    """The source of an environment that can be served."""
    return ADDITION.format(name=name, answer=answer)


class Command:
    """A running `ors`, whose lines on standard error are kept."""

    def __init__(self, words: list[str], folder: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ors.cli", *words],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._new: queue.Queue[str] = queue.Queue()
        self._seen = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._new.put(line.rstrip("\n"))

    def wait_for(self, pattern: str, seconds: float = 60) -> re.Match[str]:
        """The next line, after those that were waited for before, that a pattern is found in."""
        deadline = time.monotonic() + seconds
        while True:
            while self._seen < len(self.lines):
                self._seen += 1
                if found := re.search(pattern, self.lines[self._seen - 1]):
                    return found
            try:
                self.lines.append(self._new.get(timeout=max(deadline - time.monotonic(), 0.01)))
            except queue.Empty:
                pytest.fail(f"no line like {pattern!r} in {self.lines}")

    def address(self) -> str:
        """Where it serves, once it says so."""
        return self.wait_for(r"serves .* at (http://\S+)")[1].rstrip(",")

    def end(self, number: int = signal.SIGTERM, seconds: float = 60) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(10)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def clean_environment(**more: str) -> dict[str, str]:
    """The environment of this process without settings of a server, and with these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ORS_")}
    return {**kept, "NO_COLOR": "1", "COLUMNS": "200", **more}


def ask(url: str, body: Any = None, **headers: str) -> Any:
    """What a route answers: JSON, or the text of a stream."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read().decode()
        return json.loads(text) if "json" in response.headers["content-type"] else text
