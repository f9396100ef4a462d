"""The ports: what adapters implement, what faces see, and the data that crosses between processes.

Nothing here runs author code. An episode answers with `Work`, which says what to run; the runtime of the owner process
runs it, away from the event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from ors.core.failures import Failure
from ors.core.secrets import Secrets

__all__ = [
    "Document",
    "Host",
    "Latch",
    "Offering",
    "OfferingSpec",
    "Op",
    "Opened",
    "Outcome",
    "Principal",
    "Script",
    "Start",
    "StepEpisode",
    "StepOutcome",
    "TaskQuery",
    "TaskRef",
    "Tasks",
    "ToolEpisode",
    "ToolOutcome",
    "Work",
]

OpKind = Literal["open", "prompt", "tools", "call", "terminal", "reset", "step", "state", "own_tools"]
Mode = Literal["run", "attach", "run_or_attach"]


class TaskRef(msgspec.Struct, frozen=True):
    """A task by its place; `key` identifies its content where that is known."""

    split: str
    index: int
    key: str | None = None


class Start(msgspec.Struct, frozen=True):
    """What an episode starts from: a task by reference or in full, a seed, options and secrets.

    kind: how a session is played, whatever kind its environment is of, from its opening on; None: as that is.
    lazy: nothing is made before something is asked of the session, which counts as one from the start all the same.
    """

    ref: TaskRef | None = None
    task: Any = None
    seed: int | None = None
    options: Mapping[str, Any] = {}
    secrets: Secrets = Secrets()
    kind: Literal["tools", "steps"] | None = None
    lazy: bool = False


class Principal(msgspec.Struct, frozen=True):
    """Who asks. A trainer may do all; an agent acts in one session and on its tools only."""

    kind: Literal["trainer", "agent"] = "trainer"
    key: str | None = None
    session: str | None = None


class Op(msgspec.Struct, frozen=True):
    """One thing asked of a session, as data; `open` asks for nothing but that it be there."""

    kind: OpKind
    call_id: str | None = None
    name: str | None = None
    input: Any = None
    mode: Mode = "run"
    env: str | None = None
    timeout_s: float | None = None
    start: Start | None = None

    @property
    def limit_s(self) -> float | None:
        """How long it may take; a step has its limit in its plan, which may tell the environment of it."""
        return self.timeout_s if self.kind != "step" else None


class ToolOutcome(msgspec.Struct, frozen=True):
    """A call that ran: the JSON of its ToolOutput, and what the core must know of it."""

    body: bytes
    reward: float | None = None
    finished: bool = False


class StepOutcome(msgspec.Struct, frozen=True):
    """A step or a reset: the observation, the reward of any numeric type, and whether the episode is over.

    metadata: what the environment says beside. notes: what there is to say of the request itself, as a JSON object.
    """

    observation: Any
    reward: bool | int | float | None = None
    done: bool = False
    metadata: Any = None
    notes: dict[str, Any] | None = None


class Document(msgspec.Struct, frozen=True):
    """A JSON text: a prompt, a list of tools, a task, a state. `env`: the session's environment, where it is tools."""

    body: bytes
    env: str | None = None


class Opened(msgspec.Struct, frozen=True):
    """A session exists; setup may still run. task_key: what identifies its task, wherever that stands."""

    sid: str
    env: str
    task_key: str | None = None


Outcome: TypeAlias = ToolOutcome | StepOutcome | Document | Opened | Failure


class TaskQuery(msgspec.Struct, frozen=True):
    """A question about tasks: which splits, how many, one by index, or a slice. `metadata`: about the environment.

    version: a text that differs after the tasks of the split have changed, or null where nobody can tell.
    """

    kind: Literal["splits", "count", "get", "range", "metadata", "version"]
    split: str = ""
    index: int = 0
    start: int | None = None
    stop: int | None = None


class OfferingSpec(msgspec.Struct, frozen=True):
    """What an environment offers, as data that fronts keep: they never import an author's class.

    tools: the tools that every session has. action: the JSON Schema of an action, where it is played by steps; schemas:
    this and those of observations and states. own_tasks: it has tasks, and not only seeds. tool_actions: whether it
    takes the actions that list and call tools, and whether results are then as MCP has them (`mcp`) or its own
    (`plain`). max_sessions: as many at once; None: as many as the machine bears.
    """

    name: str
    kind: Literal["tools", "steps"]
    tools: bytes = b"[]"
    terminal: bytes = b"null"
    description: str = ""
    lists_tasks: bool = True
    action: bytes = b"null"
    schemas: bytes = b"null"
    own_tasks: bool = True
    tool_actions: Literal["none", "plain", "mcp"] = "none"
    max_sessions: int | None = None


class Latch:
    """Closed by the call that ends an episode, on whatever thread it runs; no later call of the episode may start."""

    __slots__ = ("closed",)

    def __init__(self) -> None:
        self.closed = False


class Work(msgspec.Struct, eq=False):
    """Author code to run and the rules for running it.

    fn: called on a lane, or on the author loop when `is_async`; it returns an Outcome (a synchronous one may return an
    awaitable, which then continues on the author loop). label: names the code in logs. The rest orders it among the
    calls of its session: works with the same `serial` key never overlap, `concurrent` ones overlap with all but
    exclusive ones, `exclusive` ones with none.
    """

    fn: Callable[[], Any]
    label: str
    is_async: bool = False
    serial: str | None = None
    concurrent: bool = False
    exclusive: bool = True
    timeout: float | None = None


Script: TypeAlias = Generator[Work, Any, Outcome]
"""Several works one after another with our own code between them; it holds its place in the order throughout."""

Plan: TypeAlias = Work | Script | Outcome
"""What an episode answers when asked for something: what to run, or the outcome where there is nothing to run."""


class ToolEpisode(Protocol):
    """One running instance that is acted on by calling tools. No method runs author code itself."""

    def open(self) -> Plan:
        """Make the instance and set it up."""
        ...

    def prompt(self) -> Plan:
        """The prompt, as a Document holding a list of blocks."""
        ...

    def tools(self) -> Plan:
        """The tools of this task, as a Document holding a list of tool specifications."""
        ...

    def call(self, name: str, input: Any) -> Plan:
        """Call a tool; the outcome is a ToolOutcome or a Failure."""
        ...

    def close(self, why: str) -> Plan | None:
        """Release what the instance holds; None when nothing was made."""
        ...


class StepEpisode(Protocol):
    """One running instance that is acted on by steps. It may be reset many times."""

    def open(self) -> Plan:
        """Make the instance."""
        ...

    def reset(self, start: Start) -> Plan:
        """Start an episode; the outcome is a StepOutcome."""
        ...

    def step(self, action: Any, timeout_s: float | None, options: Mapping[str, Any] = {}) -> Plan:
        """Act; the outcome is a StepOutcome. `options`: what else it may be told, from the Op's `start`."""
        ...

    def state(self) -> Plan:
        """The state, as a Document holding an object."""
        ...

    def own_tools(self) -> Plan:
        """The tools that its actions call, as a Document holding a list; asked for where `tool_actions` is `mcp`."""
        ...

    def close(self, why: str) -> Plan | None:
        """Release what the instance holds; None when nothing was made."""
        ...


RunWork: TypeAlias = Callable[[Work], Awaitable[Any]]


class Tasks(Protocol):
    """The tasks of an offering. Its methods run on the owner's event loop and hand author code to `run`."""

    async def query(self, query: TaskQuery, run: RunWork) -> Document | Failure:
        """Answer a question with JSON: a list of splits, a number, a task, or a list of tasks."""
        ...

    async def resolve(self, ref: TaskRef, run: RunWork) -> Any:
        """The task at a place, as JSON data, or a Failure."""
        ...

    def stream(self, split: str, run: RunWork) -> AsyncIterator[bytes | Failure]:
        """The JSON of every task of a split, in pieces that join to one list; after it stands `,"truncated":true` where
        there are more tasks. A Failure may come first; later it says that the list breaks off."""
        ...

    # find(ref, run): a task with its key, or a Failure; key_of(task): the key of a task in full. Both where the author
    # has ids, or keys are to be had without reading the task twice.


class Offering(Protocol):
    """A live environment in its owner process."""

    @property
    def spec(self) -> OfferingSpec:
        """What is offered."""
        ...

    # has_tools: bool, where it is one of steps that takes the actions which list and call tools

    @property
    def tasks(self) -> Tasks | None:
        """Its tasks; None for an environment of steps that has none of its own: seeds are its tasks then."""
        ...

    @property
    def affinity(self) -> Literal["any", "session", "class"]:
        """On which threads its synchronous code runs."""
        ...

    def episode(self, start: Start) -> ToolEpisode | StepEpisode:
        """A new episode, not opened yet."""
        ...


class Host(Protocol):
    """All that a face sees: a directory of sessions and the way to them. Every argument and result can be encoded."""

    def offerings(self) -> Mapping[str, OfferingSpec]:
        """The environments by name in lower case; the first is the default."""
        ...

    async def open(
        self, sid: str, env: str | None, start: Start, principal: Principal, key: str | None
    ) -> Opened | Failure:
        """Open a session; setup goes on in the background. The same `key` again joins the first request."""
        ...

    def perform(self, sid: str, principal: Principal, op: Op) -> Awaitable[Outcome]:
        """Ask something of a session. Cancelling the awaitable detaches from a call and never cancels it."""
        ...

    async def cancel(self, sid: str, principal: Principal, call_id: str) -> Document | Failure:
        """Cancel a running call."""
        ...

    async def end(self, sid: str, principal: Principal, why: str) -> Document | Failure:
        """End a session: its calls are cancelled, then its teardown runs."""
        ...

    def touch(self, sid: str, principal: Principal) -> Awaitable[Failure | None]:
        """Keep a session alive."""
        ...

    async def task(self, env: str, query: TaskQuery) -> Document | Failure:
        """Answer a question about tasks."""
        ...

    def tasks(self, env: str, split: str) -> AsyncIterator[bytes | Failure]:
        """Stream every task of a split; see Tasks.stream."""
        ...

    async def status(self) -> dict[str, Any]:
        """Counts of sessions, calls, threads and zombies, and whether new sessions are welcome."""
        ...

    async def drain(self, grace_s: float) -> None:
        """Refuse new episodes, let running calls end within the grace time, then end every session."""
        ...
