"""Servers that run as processes of this machine: from a project that uv installs, or from what is installed already."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import IO, Any

from ors.openenv.providers.base import RuntimeProvider, free_port, wait_until_healthy

__all__ = ["LocalProcessProvider", "UVProvider"]

_STOP_S = 10.0
_TAIL_BYTES = 4096


class LocalProcessProvider(RuntimeProvider):
    """Runs `python -m uvicorn APP` with the interpreter of this process. `folder`: where it starts."""

    def __init__(
        self,
        app: str = "server.app:app",
        host: str = "127.0.0.1",
        env_vars: dict[str, str] | None = None,
        context_timeout_s: float = 60.0,
        folder: str | None = None,
    ) -> None:
        self.app = app
        self.host = host
        self.env_vars = dict(env_vars or {})
        self.context_timeout_s = context_timeout_s
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._url: str | None = None

    @property
    def base_url(self) -> str:
        """The address of the server. Raises RuntimeError before it is started."""
        if self._url is None:
            raise RuntimeError("the server is not started")
        return self._url

    def start(self, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any) -> str:
        """Start the server and return its address. kwargs: options of uvicorn (`workers=2`)."""
        if self._process is not None and self._process.poll() is None:
            raise RuntimeError("this provider has started a server already; use another provider for another one")
        port = port or free_port()
        options = [f"--{name.replace('_', '-')}={value}" for name, value in kwargs.items()]
        self._log = tempfile.TemporaryFile(prefix="ors-server-")  # noqa: SIM115  closed by stop
        self._process = subprocess.Popen(  # noqa: S603  what the caller wants to run
            [*self._command(), self.app, "--host", self.host, "--port", str(port), *options],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self._folder,
            env={**os.environ, **self.env_vars, **(env_vars or {})},
            start_new_session=True,
        )
        reached = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        self._url = f"http://{reached}:{port}"
        return self._url

    def wait_for_ready(self, base_url: str | None = None, timeout_s: float | None = None) -> None:
        """Wait until the server says that it is alive. Raises RuntimeError when it ends, TimeoutError."""
        seconds = timeout_s if timeout_s is not None else self.context_timeout_s
        wait_until_healthy(base_url or self.base_url, seconds, self.last_words, self._alive)

    def stop(self) -> None:
        """Stop it, and what it has started; a second call does nothing."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if self._log is not None:
            self._log.close()
            self._log = None

    def last_words(self) -> str:
        """The last that the server wrote."""
        if self._log is None:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode("utf-8", "replace").strip()

    def __enter__(self) -> str:
        try:
            url = self.start()
            self.wait_for_ready(url)
        except BaseException:
            self.stop()
            raise
        return url

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "uvicorn"]

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None


class UVProvider(LocalProcessProvider):
    """Runs `uv run --isolated --project PROJECT -- uvicorn APP`: uv installs what the project needs first.

    project_path: a folder, or what uv can fetch (`git+https://…`).
    """

    def __init__(
        self,
        project_path: str,
        app: str = "server.app:app",
        host: str = "0.0.0.0",
        reload: bool = False,
        env_vars: dict[str, str] | None = None,
        context_timeout_s: float = 60.0,
    ) -> None:
        super().__init__(app, host, env_vars, context_timeout_s)
        self.project_path = project_path
        self.reload = reload

    def _command(self) -> list[str]:
        uv = shutil.which("uv")
        if uv is None:
            raise RuntimeError("UVProvider needs the program uv: https://docs.astral.sh/uv, or pip install uv")
        remote = "://" in self.project_path
        source = ["--with", self.project_path] if remote else ["--project", self.project_path]
        return [uv, "run", "--isolated", *source, "--", "uvicorn", *(["--reload"] if self.reload else [])]
