"""`Environment`, the base of environments written for OpenEnv, and what goes with it."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypedDict, TypeVar

from ors.openenv.models import Action, EnvironmentMetadata, Observation, State

if TYPE_CHECKING:
    from ors.openenv.rubrics import Rubric

__all__ = [
    "ActT",
    "Environment",
    "Message",
    "ModelTokenizer",
    "ObsT",
    "StateT",
    "TaskProvider",
    "Transform",
]

ActT = TypeVar("ActT", bound=Action)
ObsT = TypeVar("ObsT", bound=Observation)
StateT = TypeVar("StateT", bound=State)


class Message(TypedDict):
    """One message of a conversation, as chat templates read it."""

    role: str
    content: str


class ModelTokenizer(Protocol):
    """A tokenizer that knows its model's chat template."""

    def apply_chat_template(
        self,
        conversation: list[Message],
        tokenize: bool = True,
        return_tensors: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """The conversation as the model reads it."""
        ...

    def decode(self, token_ids: Any, skip_special_tokens: bool = False, **kwargs: Any) -> str:
        """Tokens as text."""
        ...


class TaskProvider(Protocol):
    """The tasks of an environment. Nothing inherits from it: an environment has these methods, or it does not.

    Each may be synchronous or asynchronous, is asked of an instance that was never reset, and changes nothing. Which
    task an episode is about is said to `reset`, by its split and index.
    """

    def list_splits(self) -> list[Any]:
        """The splits: names, or objects with `name` and `type`."""
        ...

    def list_tasks(self, split: str) -> list[Any]:
        """The tasks of a split; a part of them where there are very many."""
        ...

    def num_tasks(self, split: str) -> int:
        """How many tasks a split has, also where not all are listed."""
        ...

    def get_task(self, split: str, index: int) -> Any:
        """The task at a place. Raises IndexError where there is none."""
        ...

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Any]:
        """The tasks of a slice."""
        ...


class Transform(ABC, Generic[ObsT]):
    """Changes observations: adds a reward, a measure, whatever an environment itself does not know of."""

    @abstractmethod
    def __call__(self, observation: ObsT) -> ObsT:
        """The observation, changed or not."""


class Environment(ABC, Generic[ActT, ObsT, StateT]):
    """One environment, which is reset and then acted on, step by step.

    A server makes an instance for each of its sessions. `reset` may take whatever further keywords its clients are to
    give. An environment whose code is asynchronous defines `reset_async` and `step_async`, which are then called
    instead.

    SUPPORTS_CONCURRENT_SESSIONS: written in a class, False keeps it to one session at a time; left as it is, there may
    be as many as the server has room for. REQUIRES_SINGLE_THREAD_EXECUTOR: all instances are made and called on one
    thread.
    """

    SUPPORTS_CONCURRENT_SESSIONS: bool = False
    REQUIRES_SINGLE_THREAD_EXECUTOR: bool = False

    # for those that do not call __init__
    transform: Transform[ObsT] | None = None
    rubric: Rubric | None = None

    def __init__(self, transform: Transform[ObsT] | None = None, rubric: Rubric | None = None) -> None:
        self.transform = transform
        self.rubric = rubric

    @abstractmethod
    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> ObsT:
        """Begin an episode."""

    async def reset_async(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> ObsT:
        """Begin an episode; what asynchronous environments define."""
        return self.reset(seed=seed, episode_id=episode_id, **kwargs)

    @abstractmethod
    def step(self, action: ActT, timeout_s: float | None = None, **kwargs: Any) -> ObsT:
        """Act."""

    async def step_async(self, action: ActT, timeout_s: float | None = None, **kwargs: Any) -> ObsT:
        """Act; what asynchronous environments define."""
        return self.step(action, timeout_s=timeout_s, **kwargs)

    @property
    @abstractmethod
    def state(self) -> StateT:
        """The state of the current episode."""

    def get_metadata(self) -> EnvironmentMetadata:
        """What the environment says of itself."""
        name = type(self).__name__
        return EnvironmentMetadata(name=name, description=f"{name} environment", version="1.0.0")

    def _apply_transform(self, observation: ObsT) -> ObsT:
        return observation if self.transform is None else self.transform(observation)

    def _apply_rubric(self, action: ActT, observation: ObsT) -> Any:
        """The reward that the rubric gives, 0.0 without one; for `step`."""
        return 0.0 if self.rubric is None else self.rubric(action, observation)

    async def _apply_rubric_async(self, action: ActT, observation: ObsT) -> Any:
        """The same for `step_async`, of rubrics of either kind."""
        score = self._apply_rubric(action, observation)
        return await score if inspect.isawaitable(score) else score

    def _reset_rubric(self) -> None:
        """Let the rubric forget the last episode; for `reset`."""
        if self.rubric is not None:
            self.rubric.reset()

    async def _reset_rubric_async(self) -> None:
        """The same for `reset_async`."""
        if self.rubric is not None:
            reset: Any = getattr(self.rubric, "reset_async", self.rubric.reset)
            done = reset()
            if inspect.isawaitable(done):
                await done

    def render_web(self, observation: dict[str, Any]) -> str | None:
        """HTML that shows an observation to people."""
        return None

    def web_actions(self, observation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Actions that people may choose from after an observation: what each is called, and the action."""
        return []

    def close(self) -> None:
        """Release what the instance holds."""
