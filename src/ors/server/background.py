"""A server in a thread of this process: for tests, notebooks, and commands that serve for as long as they run."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import Any, Self

import uvicorn

from ors.runtime import capture
from ors.server.application import Application
from ors.server.connection import Connection

__all__ = ["Background"]

_STOP_S = 60.0


class Background:
    """Serves on a free port of 127.0.0.1 from the start of a `with` block to its end; the block is given the address.

    Raises RuntimeError when the server cannot start. The logging of the process is left as it is.
    """

    def __init__(self, app: Any, application: Application) -> None:
        self._application = application
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            http=Connection,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=5,
            server_header=False,
            date_header=False,
            lifespan="on",
            proxy_headers=False,
            ws="none",
        )
        self._loop_factory = config.get_loop_factory()
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._known = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ors-server", daemon=True)

    def __enter__(self) -> str:
        self.start()
        return self.url

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Return when requests are answered."""
        if self._application.settings.capture_output:
            capture.install()
        self._thread.start()
        try:
            self._known.wait()
        except BaseException:
            self.stop()
            raise
        if not self._server.started:
            self.stop()
            raise RuntimeError("the server could not start") from self._error
        return self

    def stop(self) -> None:
        """Let running calls end within `shutdown_grace`, tear everything down, and return."""
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has ended by itself since
                asyncio.run_coroutine_threadsafe(self._end(), loop)
            self._thread.join(_STOP_S + self._application.settings.shutdown_grace)
        self._socket.close()
        capture.uninstall()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._loop_factory) as runner:
                self._loop = runner.get_loop()
                runner.run(self._serve())
        except BaseException as exc:
            self._error = exc
        finally:
            self._known.set()

    async def _serve(self) -> None:
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not serving.done():  # noqa: ASYNC110 - uvicorn says it nowhere else
            await asyncio.sleep(0.002)
        self._known.set()
        await serving

    async def _end(self) -> None:
        if self._application.host is not None:
            await self._application.host.drain(self._application.settings.shutdown_grace)
            # the answers that the drain caused are on their way to the clients
            await asyncio.sleep(0.02)
        self._server.should_exit = True
