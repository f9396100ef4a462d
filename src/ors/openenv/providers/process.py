"""Servers that run as processes of this machine: from a project that uv installs, or from what is installed already."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import IO, Any

from ors.openenv.providers.base import RuntimeProvider, at_last, free_port, wait_until_healthy

__all__ = ["LocalProcessProvider", "UVProvider"]

_STOP_S = 10.0
_TAIL_BYTES = 4096


class LocalProcessProvider(RuntimeProvider):
    """Runs `python -m uvicorn APP` with the interpreter of this process. `folder`: where it starts.

    A server that nobody has stopped is stopped at the end of this process.
    """

    def __init__(
        self,
        app: str = "server.app:app",
        host: str = "127.0.0.1",
        env_vars: dict[str, str] | None = None,
        context_timeout_s: float = 60.0,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.app = app
        self.host = host
        self.env_vars = dict(env_vars or {})
        self.context_timeout_s = context_timeout_s
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._url: str | None = None
        self._stopping: Callable[[], Any] | None = None

    @property
    def base_url(self) -> str:
        """The address of the server. Raises RuntimeError before it is started."""
        if self._url is None:
            raise RuntimeError("the server is not started")
        return self._url

    def start(self, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any) -> str:
        """Start the server and return its address. kwargs: options of uvicorn (`workers=2`)."""
        if self._alive():
            raise RuntimeError("this provider has started a server already; use another provider for another one")
        self.stop()
        if port and not _free(self.host, port):
            raise RuntimeError(f"port {port} of {self.host} is in use; stop what listens there, or leave the port out")
        command = self._command()
        port = port or free_port()
        options = [f"--{name.replace('_', '-')}={value}" for name, value in kwargs.items()]
        self._log = tempfile.TemporaryFile(prefix="ors-server-")  # noqa: SIM115  closed by stop
        try:
            self._process = subprocess.Popen(  # noqa: S603  what the caller wants to run
                [*command, self.app, "--host", self.host, "--port", str(port), *options],
                stdout=self._log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                env={**os.environ, **self.env_vars, **(env_vars or {})},
                start_new_session=True,
            )
        except BaseException:
            self.stop()
            raise
        self._stopping = at_last(self, functools.partial(_stop, self._process, self._log))
        reached = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        self._url = f"http://{reached}:{port}"
        return self._url

    def wait_for_ready(self, timeout_s: float | None = None) -> None:
        """Wait until the server says that it is alive. Raises RuntimeError when it ends, TimeoutError."""
        seconds = timeout_s if timeout_s is not None else self.context_timeout_s
        wait_until_healthy(self.base_url, seconds, self.last_words, self._alive)

    def stop(self) -> None:
        """Stop it, and what it has started; a second call does nothing."""
        stopping, self._stopping, self._process, self._url = self._stopping, None, None, None
        if stopping is not None:
            stopping()
        if self._log is not None:
            self._log.close()
            self._log = None

    def last_words(self) -> str:
        """The last that the server wrote."""
        try:
            log = self._log.fileno() if self._log is not None else -1
            size = os.fstat(log).st_size
            return os.pread(log, _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode("utf-8", "replace").strip()
        except (OSError, ValueError):
            return ""  # it was stopped

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "uvicorn"]

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None


def _stop(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    log.close()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        pass
    # what it has started may still be there
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class UVProvider(LocalProcessProvider):
    """Runs `uv run --isolated --project PROJECT -- uvicorn APP` in the project: uv installs what it needs first.

    project_path: a folder, or a repository, `git+https://…` (`@ref` at its end names a branch or a tag), which is
    cloned for as long as the server runs.
    """

    def __init__(
        self,
        project_path: str | os.PathLike[str],
        app: str = "server.app:app",
        host: str = "0.0.0.0",
        reload: bool = False,
        env_vars: dict[str, str] | None = None,
        context_timeout_s: float = 60.0,
    ) -> None:
        super().__init__(app, host, env_vars, context_timeout_s)
        self.project_path = os.fspath(project_path)
        self.reload = reload
        self._removing: Callable[[], Any] | None = None

    def stop(self) -> None:
        """Stop it, and remove what was cloned; a second call does nothing."""
        super().stop()
        removing, self._removing = self._removing, None
        if removing is not None:
            removing()

    def _command(self) -> list[str]:
        uv = _program("uv", "https://docs.astral.sh/uv, or pip install uv")
        if self.project_path.startswith("git+"):
            self._folder = self._clone(self.project_path.removeprefix("git+"))
        else:
            self._folder = os.path.abspath(self.project_path)
            if not os.path.isdir(self._folder):
                raise FileNotFoundError(f"there is no project at {self._folder}")
        reload = ["--reload"] if self.reload else []
        return [uv, "run", "--isolated", "--project", self._folder, "--", "uvicorn", *reload]

    def _clone(self, url: str) -> str:
        git = _program("git", "https://git-scm.com")
        head, at, ref = url.rpartition("@")
        branch = ["--branch", ref] if at and "/" not in ref and "://" in head else []
        folder = tempfile.mkdtemp(prefix="ors-project-")
        self._removing = at_last(self, functools.partial(shutil.rmtree, folder, ignore_errors=True))
        # a repository that asks for a password is one that is not there for us
        environ = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
        done = subprocess.run(  # noqa: S603  what the caller wants to run
            [git, "clone", "--quiet", "--depth", "1", *branch, "--", head if branch else url, folder],
            capture_output=True,
            text=True,
            env=environ,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            self.stop()
            raise RuntimeError(f"{url} cannot be cloned: {done.stderr.strip()[-1000:]}")
        return folder


def _free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _program(name: str, where: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"UVProvider needs the program {name}: {where}")
    return found
