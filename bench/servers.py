"""The servers that are measured: started one at a time, pinned to one core, logs in a file, read through /proc."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cores import on_core
from peers import clean_environ, peer_python
from wire import KEY

HERE = Path(__file__).resolve().parent
TICK = os.sysconf("SC_CLK_TCK")
START_LIMIT_S = 60.0


@dataclass(frozen=True)
class Subject:
    """One implementation in one configuration."""

    name: str
    implementation: str
    environ: tuple[tuple[str, str], ...] = ()

    @property
    def python(self) -> Path:
        ours = self.implementation in ("ors-kit", "bare")
        return Path(sys.executable) if ours else peer_python(self.implementation)


OURS = Subject("ors-kit", "ors-kit", (("ORS_LOG_LEVEL", "info"),))
BARE = Subject("bare", "bare")
ORS_SDK = Subject("ors-sdk", "ors-sdk")
ORS_SDK_QUIET = Subject("ors-sdk, log level WARNING", "ors-sdk", (("ORS_LOG_LEVEL", "WARNING"),))
OPENREWARD = Subject("openreward", "openreward")
SUBJECTS = (OURS, BARE, ORS_SDK, ORS_SDK_QUIET, OPENREWARD)


class Running:
    """A server process that answers."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.log = log
        self.start_s = 0.0

    def cpu_s(self) -> float:
        """Processor time that the process has used, all threads, user and system."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def rss_kib(self, kind: str = "VmRSS") -> int:
        """Resident memory; `RssAnon` is without that of files."""
        return self._status(kind)

    def threads(self) -> int:
        return self._status("Threads")

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
        raise RuntimeError(f"the server has ended, with code {self.process.poll()}; its log ends in: {self.log_tail()}")

    def wait_until_idle(self, limit_s: float = 60.0) -> None:
        """Return when a second has passed in which the process used no processor time to speak of."""
        deadline = time.monotonic() + limit_s
        used = self.cpu_s()
        while time.monotonic() < deadline:
            time.sleep(1.0)
            now = self.cpu_s()
            if now - used <= 2 / TICK:
                return
            used = now
        raise RuntimeError(f"the server was still busy after {limit_s:.0f} s")

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-1500:] if self.log.exists() else ""


@contextmanager
def serving(subject: Subject, *arguments: str, program: str = "math_env.py") -> Iterator[Running]:
    """Start a fresh server of the subject, and stop it at the end.

    Each sample gets a process of its own: what one server leaves behind (results kept for a minute, say) must not be
    paid for while another is measured.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    if subject.implementation == "bare" and program == "math_env.py":
        command = [str(subject.python), str(HERE / "bare.py"), str(port)]
    else:
        command = [str(subject.python), str(HERE / program), subject.implementation, str(port), *arguments]
        command += ["--key", KEY] if subject is OURS else []
    with tempfile.TemporaryDirectory(prefix="ors-bench-") as folder:
        log = Path(folder) / "server.log"
        with log.open("wb") as sink:
            begun = time.monotonic()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                cwd=folder,
                env=clean_environ(**dict(subject.environ)),
                preexec_fn=on_core(0),
            )
        server = Running(process, port, log)
        try:
            _wait_until_up(server)
            server.start_s = time.monotonic() - begun
            yield server
        finally:
            _stop(process)


def _wait_until_up(server: Running) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            break
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if connection.recv(64).startswith(b"HTTP/1.1 200"):
                    return
        except OSError:
            pass
        time.sleep(0.01)
    code = server.process.poll()
    raise RuntimeError(f"the server did not come up (exit code {code}); its log ends in: {server.log_tail()}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
