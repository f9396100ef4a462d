"""What a provider has to offer, and how it waits for a server."""

from __future__ import annotations

import abc
import os
import socket
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Callable
from typing import Any, Self

__all__ = ["ContainerProvider", "RuntimeProvider", "at_last", "free_port", "wait_until_healthy"]

_POLL_S = 0.1


class ContainerProvider(abc.ABC):
    """Starts a server from a container image."""

    @abc.abstractmethod
    def start_container(
        self, image: str, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any
    ) -> str:
        """Start a container and return the address of its server. `port`: on this machine; None: any free one."""

    @abc.abstractmethod
    def stop_container(self) -> None:
        """Stop and remove the container; a second call does nothing."""

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """Wait until the server says that it is alive.

        Raises TimeoutError, or RuntimeError as soon as it has ended; both with the server's last words.
        """
        wait_until_healthy(base_url, timeout_s, self.last_words, self.alive)

    def alive(self) -> bool:
        """Whether what was started may still become ready."""
        return True

    def last_words(self) -> str:
        """What the server wrote last, for errors."""
        return ""


class RuntimeProvider(abc.ABC):
    """Starts a server from its source. With `with` it is started, waited for and stopped."""

    @abc.abstractmethod
    def start(self, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any) -> str:
        """Start the server and return its address. `port` None: any free one."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop it; a second call does nothing."""

    @abc.abstractmethod
    def wait_for_ready(self, timeout_s: float = 60.0) -> None:
        """Wait until the server says that it is alive. Raises TimeoutError, with the server's last words."""

    def __enter__(self) -> Self:
        try:
            self.start()
            self.wait_for_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def wait_until_healthy(
    base_url: str,
    timeout_s: float,
    last_words: Callable[[], str] | None = None,
    alive: Callable[[], bool] | None = None,
) -> None:
    """Ask `/health` until it answers 200. Raises TimeoutError; RuntimeError as soon as `alive()` is false."""
    deadline = time.monotonic() + timeout_s
    while True:
        why = health(base_url, min(5.0, max(0.1, deadline - time.monotonic())))
        if not why:
            return
        ended = alive is not None and not alive()
        if ended or time.monotonic() >= deadline:
            said = last_words() if last_words is not None else ""
            about = f"; it said last:\n{said}" if said else ""
            if ended:
                raise RuntimeError(f"the server at {base_url} ended before it was ready{about}")
            raise TimeoutError(f"the server at {base_url} was not ready within {timeout_s:g} s ({why}){about}")
        time.sleep(_POLL_S)


def health(base_url: str, timeout_s: float, *, proxies: bool = False) -> str:
    """Ask `/health` once; the answer is why it is not well, and nothing where it is."""
    handlers = [] if proxies else [urllib.request.ProxyHandler({})]
    try:
        with urllib.request.build_opener(*handlers).open(f"{base_url.rstrip('/')}/health", timeout=timeout_s) as answer:
            return "" if answer.status == 200 else f"it answers {answer.status}"
    except urllib.error.HTTPError as exc:
        exc.close()
        return f"it answers {exc.code}"
    except (OSError, ValueError) as exc:
        return str(exc) or type(exc).__name__
    except Exception as exc:  # http.client's own: what answers is no HTTP server
        return f"it does not speak HTTP: {exc!r}"


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def at_last(owner: object, stop: Callable[[], Any]) -> Callable[[], Any]:
    """Have something stopped when its owner is forgotten, or at the end of this process; or now, by calling the result.

    `stop` must not hold the owner. In a forked child nothing is stopped: it is the parent's.
    """
    pid = os.getpid()

    def once() -> None:
        if os.getpid() == pid:
            stop()

    return weakref.finalize(owner, once)
