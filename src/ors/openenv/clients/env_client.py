"""The client that environments' own clients are made from; see `EnvClient`."""

from __future__ import annotations

import asyncio
import copy
import inspect
import os
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from pydantic import BaseModel

from ors.client.portal import portal
from ors.openenv.clients.addresses import http_base
from ors.openenv.clients.kinds import arguments_of, named, observed, read
from ors.openenv.clients.pending import run
from ors.openenv.clients.step_result import StepResult
from ors.openenv.clients.task_api import TaskAPI
from ors.openenv.clients.wire import Wire

if TYPE_CHECKING:
    from ors.openenv.clients.launching import Launch
    from ors.openenv.clients.sync_client import SyncEnvClient

__all__ = ["EnvClient"]

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")


class EnvClient(Generic[ActT, ObsT, StateT]):
    """A session with an environment: `reset`, `step`, `state`.

    Outside of an event loop the methods return results; inside of one, what they return is awaited (or touched, which
    waits). `class MyEnv(EnvClient[MyAction, MyObservation, MyState])` is complete: the three types say how messages are
    written and read. A subclass may define `_step_payload`, `_parse_result` and `_parse_state` instead.

    base_url: `http://…`, `ws://…` or a bare host. provider: what starts and stops the server. mode: "simulation" or
    "production" (or the variable OPENENV_CLIENT_MODE). message_timeout_s: how long to wait for an answer; None: as long
    as it takes. websocket_ping_interval_s: how often a quiet connection is used; None: never. No pong is waited for,
    whatever websocket_ping_timeout_s says: a peer that is gone is noticed by TCP.

    Raises ConnectionError where no server answers, ServerError (a RuntimeError) for what the server refuses,
    TimeoutError, and SessionLost when an episode is gone. A copy, pickled or not, is a client of the same server with a
    session of its own.
    """

    _types: tuple[Any, ...] = (ActT, ObsT, StateT)  # type: ignore[misc]
    _base_url: str | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # of the class itself: what its bases say of theirs is inherited
        if "__orig_bases__" in cls.__dict__ and (types := arguments_of(cls, EnvClient)) is not None:
            cls._types = types

    def __init__(
        self,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        message_timeout_s: float | None = 60.0,
        max_message_size_mb: float = 100.0,
        websocket_ping_interval_s: float | None = 20.0,
        websocket_ping_timeout_s: float | None = 20.0,
        provider: Any = None,
        mode: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._check_complete()
        if base_url is None and provider is None:
            raise ValueError("EnvClient needs a base_url, or a provider that starts a server")
        self._mode = _mode(mode)
        self._provider = provider
        self._pid = os.getpid()
        self._base_url = base_url
        self._headers = dict(headers or {})
        self._options: dict[str, Any] = {
            "connect_timeout_s": connect_timeout_s,
            "message_timeout_s": message_timeout_s,
            "max_message_size": int(max_message_size_mb * 1024 * 1024),
            "ping_interval_s": websocket_ping_interval_s,
            "headers": self._headers,
        }
        self._wire: Wire | None = None
        self._others: list[weakref.ref[Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        # a copy has neither the session nor the server's life in its hands
        return {**self.__dict__, "_wire": None, "_provider": None, "_others": []}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._base_url or 'a server that is not started yet'}>"

    @property
    def base_url(self) -> str:
        """The address that was given, or that the provider has started a server at."""
        return self._base_url or ""

    @property
    def mode(self) -> str:
        """ "simulation" or "production"."""
        return self._mode

    @property
    def task_api(self) -> TaskAPI:
        """The splits and tasks of the environment, asked for over HTTP."""
        return TaskAPI(self._http_base(), headers=self._headers)

    # The session

    def connect(self) -> Any:
        """Open a session. The first request does it as well."""
        return run(self._connected(), "connect()")

    def disconnect(self) -> Any:
        """End the session. The next request opens another one."""
        return run(self._disconnect(), "disconnect()")

    def reset(self, **kwargs: Any) -> Any:
        """Start an episode. The arguments are the environment's own; the result is a StepResult."""
        return run(self._reset(kwargs), "reset()")

    def step(self, action: ActT, **kwargs: Any) -> Any:
        """Act. `timeout_s`: how long to wait for this one. The result is a StepResult."""
        return run(self._step(action, kwargs), "step()")

    def state(self) -> Any:
        """The state of the episode."""
        return run(self._state(), "state()")

    def new_session(self) -> Self:
        """Another client of the same server, with a session of its own; it is closed with this one."""
        made = copy.copy(self)
        self._others = [other for other in self._others if other() is not None]
        self._others.append(weakref.ref(made))
        return made

    def close(self) -> Any:
        """End the session, and stop the server if a provider started it."""
        return run(self._close(), "close()")

    def sync(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """A client whose methods return results, also inside a running event loop."""
        from ors.openenv.clients.sync_client import SyncEnvClient

        return SyncEnvClient(self)

    async def __aenter__(self) -> Self:
        await _awaited(self.connect())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await _awaited(self.close())

    def __enter__(self) -> Self:
        portal().run(self._connected())
        return self

    def __exit__(self, *exc: object) -> None:
        portal().run(self._close())

    # Servers that are started for this client

    @classmethod
    def from_docker_image(cls, image: str, provider: Any = None, **kwargs: Any) -> Launch[Self]:
        """A client of a server that runs in a container; see `Launch`.

        kwargs: options of the client, `wait_timeout` (30 seconds), and what the provider takes (`env_vars`, `port`, …).
        """
        from ors.openenv.clients.launching import Launch, in_docker

        return Launch(cls, *in_docker(image, provider, kwargs))

    @classmethod
    def from_env(cls, repo_id: str, *, use_docker: bool = True, provider: Any = None, **kwargs: Any) -> Launch[Self]:
        """A client of an environment of the hub, `owner/name`: its container (`tag`), or its source run by uv.

        kwargs: as of `from_docker_image`; without docker also those of UVProvider (`project_path`, `app`).
        """
        from ors.openenv.clients.launching import Launch, from_hub

        return Launch(cls, *from_hub(repo_id, use_docker, provider, kwargs))

    # How messages are written and read

    def _step_payload(self, action: ActT) -> dict[str, Any]:
        """What a step message holds."""
        if isinstance(action, Mapping):
            return dict(action)
        if isinstance(action, BaseModel):
            return action.model_dump(mode="json")
        raise TypeError(f"an action is a model or a dict, not {type(action).__name__}")

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ObsT]:
        """What the answer to a reset or a step says."""
        reward, done = payload.get("reward"), bool(payload.get("done", False))
        observation = observed(self._type(1), payload.get("observation", {}), reward, done)
        return StepResult(observation=observation, reward=reward, done=done, metadata=payload.get("metadata"))

    def _parse_state(self, payload: dict[str, Any]) -> StateT:
        """What the answer to a question for the state says."""
        state: StateT = read(self._type(2), payload)
        return state

    def _type(self, which: int) -> Any:
        return named(self._types[which], type(self))

    def _http_base(self) -> str:
        """The address below which the HTTP routes are, with a slash at its end: `urljoin(self._http_base(), route)`."""
        return http_base(self._started())

    # Inside; these run on the client's own loop

    async def _connected(self) -> Self:
        await self._session().connect()
        return self

    async def _disconnect(self) -> None:
        if self._wire is not None:
            await self._wire.close()

    async def _close(self) -> None:
        try:
            others, self._others = self._others, []
            for other in [other for each in others if (other := each()) is not None]:
                await other._close()
            await self._disconnect()
        finally:
            provider, self._provider = self._provider, None
            # in a forked child the server is the parent's
            if provider is not None and self._pid == os.getpid():
                stop = getattr(provider, "stop_container", None) or provider.stop
                if inspect.iscoroutinefunction(stop):
                    await stop()
                else:
                    # it may take seconds, and other clients' sessions are on this loop
                    await asyncio.to_thread(stop)

    async def _reset(self, kwargs: dict[str, Any]) -> StepResult[ObsT]:
        return self._parse_result(await self._session().ask({"type": "reset", "data": kwargs}, begins=True))

    async def _step(self, action: ActT, kwargs: dict[str, Any]) -> StepResult[ObsT]:
        if unknown := sorted(kwargs.keys() - {"timeout_s"}):
            raise TypeError(f"step() over a WebSocket takes an action and timeout_s, not {', '.join(unknown)}")
        message = {"type": "step", "data": self._step_payload(action)}
        return self._parse_result(await self._session().ask(message, timeout_s=kwargs.get("timeout_s")))

    async def _state(self) -> StateT:
        return self._parse_state(await self._session().ask({"type": "state"}))

    def _session(self) -> Wire:
        if self._wire is None:
            self._wire = Wire(self._started(), **self._options)
        return self._wire

    def _started(self) -> str:
        if self._base_url is None:
            raise ConnectionError("the provider of this client has not started its server; use from_docker_image")
        return self._base_url

    def _check_complete(self) -> None:
        if not any(isinstance(kind, TypeVar) for kind in self._types):
            return
        own = ("_step_payload", "_parse_result", "_parse_state")
        missing = [name for name in own if getattr(type(self), name) is getattr(EnvClient, name)]
        if missing:
            raise TypeError(
                f"{type(self).__name__} does not say its types: write "
                f"`class {type(self).__name__}(EnvClient[Action, Observation, State])`, or define {', '.join(missing)}"
            )


async def _awaited(answer: Any) -> None:
    # a subclass may have methods of its own in their place, synchronous or not
    if inspect.isawaitable(answer):
        await answer


def _mode(given: str | None) -> str:
    mode = (given or os.environ.get("OPENENV_CLIENT_MODE") or "simulation").lower()
    if mode not in ("simulation", "production"):
        raise ValueError(f"Invalid mode: {mode!r}. Must be one of: ['simulation', 'production']")
    return mode
