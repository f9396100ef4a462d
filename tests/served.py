"""A real server in a thread of this process, on a port that the system chose."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import httpx
import uvicorn

from ors import Environment, Server
from ors.server.connection import Connection

__all__ = ["Served", "until", "wait_until"]

LIMIT_S = 30.0


class _Uvicorn(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._ready.set()


class Served:
    """A running server: uvicorn on uvloop, as `Server.run` configures it, in a thread.

    url: its address. client: a synchronous client for it. server: the `ors.Server`. Keys, limits and whatever else are
    settings. `through_app` serves `Server.app`, the FastAPI-compatible shell, in place of the bare application.
    """

    def __init__(self, environments: Sequence[type[Environment]], *, through_app: bool = False, **settings: Any):
        # a test that leaves a call running behind need not wait for it
        settings.setdefault("shutdown_grace", 0)
        self.server = Server(environments, **settings)
        self.application = self.server.application
        self._ready = threading.Event()
        self._error: BaseException | None = None
        app = self.server.app if through_app else self.application
        config = uvicorn.Config(
            app,
            host="127.0.0.1",
            port=0,
            access_log=False,
            log_config=None,
            http=Connection,
            server_header=False,
            date_header=False,
            lifespan="on",
            ws="none",
            timeout_graceful_shutdown=5,
        )
        self._uvicorn = _Uvicorn(config, self._ready)
        self._loop_factory = config.get_loop_factory()
        self.loop: Any = None
        self._thread = threading.Thread(target=self._run, name="served", daemon=True)
        self._thread.start()
        assert self._ready.wait(LIMIT_S), "the server does not start"
        if not self._uvicorn.started:
            self._thread.join(LIMIT_S)
            raise RuntimeError("the server could not start; the log says why") from self._error
        self.url = f"http://127.0.0.1:{self._uvicorn.servers[0].sockets[0].getsockname()[1]}"
        self.client = httpx.Client(base_url=self.url, timeout=LIMIT_S)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._loop_factory) as runner:
                self.loop = runner.get_loop()
                runner.run(self._uvicorn.serve())
        except BaseException as exc:
            self._error = exc
        finally:
            self._ready.set()

    @property
    def running(self) -> bool:
        """Whether it still serves."""
        return self._thread.is_alive()

    @property
    def host(self) -> Any:
        """The host behind the faces; its methods run on the server's loop, see `on_loop`."""
        return self.application.host

    def async_client(self, **options: Any) -> httpx.AsyncClient:
        """An asynchronous client; close it with `async with`."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        return httpx.AsyncClient(**{"base_url": self.url, "timeout": LIMIT_S, "limits": limits, **options})

    def on_loop(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Run something on the server's own event loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work(), self.loop).result(LIMIT_S)

    def status(self) -> dict[str, Any]:
        """What the host says of itself: sessions, calls, zombies, …"""
        status: dict[str, Any] = self.on_loop(lambda: self.host.status())
        return status

    def drain(self, grace_s: float) -> None:
        """What SIGTERM does first: refuse new sessions, let running calls end, end every session."""
        self.on_loop(lambda: self.host.drain(grace_s))

    def stop(self) -> None:
        """Stop as after SIGTERM. A second call does nothing."""
        self.client.close()
        if self._thread.is_alive():
            if self.host is not None:
                self.drain(self.server.settings.shutdown_grace)
            self._uvicorn.should_exit = True
            self._thread.join(LIMIT_S)
            assert not self._thread.is_alive(), "the server does not stop"
        if self._error is not None:
            raise self._error


def wait_until(met: Callable[[], Any], *, within_s: float = 10.0, what: str = "") -> Any:
    """Ask until the answer is true, and return it; fails when it has not come true in time."""
    deadline = time.monotonic() + within_s
    while True:
        if answer := met():
            return answer
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what or met}"
        time.sleep(0.005)


async def until(met: Callable[[], Any], *, within_s: float = 10.0, what: str = "") -> Any:
    """The same, where other things of this event loop must go on."""
    deadline = time.monotonic() + within_s
    while True:
        answer = met()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what or met}"
        await asyncio.sleep(0.005)
