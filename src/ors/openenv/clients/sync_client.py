"""The synchronous front of a client: every method returns its result, wherever it is called."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Generic, Self, TypeVar

from ors.client.portal import portal
from ors.openenv.clients.env_client import EnvClient
from ors.openenv.clients.pending import Pending
from ors.openenv.clients.step_result import StepResult
from ors.openenv.clients.task_api import TaskAPI

__all__ = ["SyncEnvClient"]

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")


class SyncEnvClient(Generic[ActT, ObsT, StateT]):
    """A client whose methods return results, in plain code, in threads, and inside a running event loop.

    What the client itself has beside these (`list_tools`, methods of a subclass) is here as well, and returns results.
    """

    def __init__(self, async_client: EnvClient[ActT, ObsT, StateT]) -> None:
        self._client = async_client

    def __repr__(self) -> str:
        return f"<Sync {self._client!r}>"

    @property
    def async_client(self) -> EnvClient[ActT, ObsT, StateT]:
        """The client behind this one."""
        return self._client

    @property
    def task_api(self) -> TaskAPI:
        """The splits and tasks of the environment, asked for over HTTP."""
        return TaskAPI(self._client._http_base(), headers=self._client._headers, waiting=True)

    def connect(self) -> Self:
        """Open a session. The first request does it as well."""
        portal().run(self._client._connected())
        return self

    def disconnect(self) -> None:
        """End the session. The next request opens another one."""
        portal().run(self._client._disconnect())

    def reset(self, **kwargs: Any) -> StepResult[ObsT]:
        """Start an episode. The arguments are the environment's own."""
        result: StepResult[ObsT] = _result(self._client.reset(**kwargs))
        return result

    def step(self, action: ActT, **kwargs: Any) -> StepResult[ObsT]:
        """Act. `timeout_s`: how long to wait for this one."""
        result: StepResult[ObsT] = _result(self._client.step(action, **kwargs))
        return result

    def state(self) -> StateT:
        """The state of the episode."""
        state: StateT = _result(self._client.state())
        return state

    def new_session(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """Another client of the same server, with a session of its own; it is closed with this one."""
        return SyncEnvClient(self._client.new_session())

    def close(self) -> None:
        """End the session, and stop the server if a provider started it."""
        portal().run(self._client._close())

    def sync(self) -> Self:
        """This client."""
        return self

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_client":
            raise AttributeError(name)
        found = getattr(self._client, name)
        if not callable(found):
            return found

        @functools.wraps(found)
        def call(*args: Any, **kwargs: Any) -> Any:
            return _result(found(*args, **kwargs))

        return call


def _result(answer: Any) -> Any:
    if isinstance(answer, Pending):
        return answer.result()
    if inspect.iscoroutine(answer):
        return portal().run(answer)
    return answer
