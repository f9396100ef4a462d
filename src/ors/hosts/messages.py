"""The messages between a host and its owner process. `TO_OWNER` and `TO_FRONT` are all there are."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ors.core.failures import Failure, failure
from ors.core.ports import (
    Document,
    Mode,
    OfferingSpec,
    Op,
    Opened,
    OpKind,
    Outcome,
    Principal,
    Start,
    StepOutcome,
    TaskQuery,
    TaskRef,
    ToolOutcome,
)
from ors.core.secrets import Secrets
from ors.hosts.frames import FrameError, json_text, json_value
from ors.jsontext import dump

__all__ = ["TO_FRONT", "TO_OWNER", "Message", "answer", "outcome_of"]


class Message(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What a frame holds. `id` is of the request it is about; 0 for what answers none."""

    id: int


class WireStart(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A Start: its data as one text, its secrets apart."""

    text: bytes
    secrets: Secrets

    @classmethod
    def of(cls, start: Start) -> WireStart:
        """What is sent for a Start."""
        ref = start.ref and [start.ref.split, start.ref.index, start.ref.key]
        value = [ref, start.task, start.seed, dict(start.options), start.kind, start.lazy]
        return cls(json_text("the task", value), start.secrets)

    def start(self) -> Start:
        """The Start that was sent."""
        ref, task, seed, options, kind, lazy = json_value("the start of an episode", self.text, _START)
        return Start(TaskRef(*ref) if ref is not None else None, task, seed, options, self.secrets, kind, lazy)


_Kind = Literal["tools", "steps"] | None
_START = tuple[tuple[str, int, str | None] | None, Any, int | None, dict[str, Any], _Kind, bool]


class WireOp(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """An Op."""

    kind: OpKind
    call_id: str | None
    name: str | None
    input: bytes | None
    mode: Mode
    env: str | None
    timeout_s: float | None
    start: WireStart | None

    @classmethod
    def of(cls, op: Op) -> WireOp:
        """What is sent for an Op."""
        text = json_text("the input", op.input) if op.input is not None else None
        start = WireStart.of(op.start) if op.start is not None else None
        return cls(op.kind, op.call_id, op.name, text, op.mode, op.env, op.timeout_s, start)

    def op(self) -> Op:
        """The Op that was sent."""
        value = json_value("the input", self.input) if self.input is not None else None
        start = self.start.start() if self.start is not None else None
        return Op(self.kind, self.call_id, self.name, value, self.mode, self.env, self.timeout_s, start)


# To the owner


class Open(Message, tag=1):
    """Open a session."""

    sid: str
    env: str | None
    start: WireStart
    principal: Principal
    key: str | None


class Perform(Message, tag=2):
    """Ask something of a session."""

    sid: str
    principal: Principal
    op: WireOp


class Detach(Message, tag=3):
    """Whoever sent the request `id` has left; what it asked for goes on."""


class Cancel(Message, tag=4):
    """Cancel a call."""

    sid: str
    principal: Principal
    call_id: str


class End(Message, tag=5):
    """End a session."""

    sid: str
    principal: Principal
    why: str


class Touch(Message, tag=6):
    """Keep a session alive."""

    sid: str
    principal: Principal


class Ask(Message, tag=7):
    """A question about tasks."""

    env: str
    text: bytes

    @classmethod
    def of(cls, id: int, env: str, query: TaskQuery) -> Ask:
        """What is sent for a query, whose numbers may be of any size."""
        return cls(id, env, dump([query.kind, query.split, query.index, query.start, query.stop]))

    def query(self) -> TaskQuery:
        """The query that was sent."""
        kind, split, index, start, stop = json_value(
            "the query", self.text, tuple[str, str, int, int | None, int | None]
        )
        return TaskQuery(kind, split, index, start, stop)


class Stream(Message, tag=8):
    """Stream the tasks of a split: at first as many pieces as `credit` says, then one for each `More`."""

    env: str
    split: str
    credit: int


class More(Message, tag=9):
    """A piece of the stream `id` has been consumed."""


class Ready(Message, tag=10):
    """How the owner does: its status."""


class Drain(Message, tag=11):
    """Refuse new episodes, let calls end, end every session."""

    grace_s: float


class Close(Message, tag=12):
    """Drain at once and end the process."""


class Level(Message, tag=13):
    """Which log records are wanted from now on."""

    level: int


# To the front


class Started(Message, tag=21):
    """The owner is ready."""

    specs: list[OfferingSpec]


class NotStarted(Message, tag=22):
    """The environments could not be made; the process ends."""

    detail: str
    traceback: str


class Failed(Message, tag=23):
    """The outcome is a Failure."""

    failure: Failure


class Called(Message, tag=24):
    """The outcome is a ToolOutcome."""

    body: bytes
    reward: float | None
    finished: bool


class Stepped(Message, tag=25):
    """The outcome is a StepOutcome."""

    text: bytes


class Told(Message, tag=26):
    """The outcome is a Document; or a piece of a stream."""

    body: bytes
    env: str | None = None


class Made(Message, tag=27):
    """The outcome is Opened."""

    sid: str
    env: str
    task_key: str | None = None


class Done(Message, tag=28):
    """The request has ended and there is no more to say; a stream is complete."""


class Log(Message, tag=29):
    """A log record of the owner process."""

    name: str
    level: int
    message: str
    created: float
    extras: bytes
    traceback: str | None


TO_OWNER = Open | Perform | Detach | Cancel | End | Touch | Ask | Stream | More | Ready | Drain | Close | Level
"""What a front sends."""

TO_FRONT = Started | NotStarted | Failed | Called | Stepped | Told | Made | Done | Log
"""What an owner sends."""

_STEP = tuple[Any, bool | int | float | None, bool, Any, dict[str, Any] | None]


def answer(id: int, outcome: Outcome | None) -> Message:
    """The message that carries an outcome."""
    match outcome:
        case ToolOutcome(body, reward, finished):
            return Called(id, body, reward, finished)
        case Document(body, env):
            return Told(id, body, env)
        case Failure():
            return Failed(id, outcome)
        case None:
            return Done(id)
        case Opened(sid, env, task_key):
            return Made(id, sid, env, task_key)
        case StepOutcome(observation, reward, done, metadata, notes):
            return Stepped(id, json_text("the observation", [observation, reward, done, metadata, notes]))
    raise FrameError(f"{type(outcome).__name__} is no outcome")


def outcome_of(message: Message) -> Outcome | None:
    """The outcome that a message carries."""
    match message:
        case Called(_, body, reward, finished):
            return ToolOutcome(body, reward, finished)
        case Told(_, body, env):
            return Document(body, env)
        case Failed(_, failed):
            return failed
        case Done():
            return None
        case Made(_, sid, env, task_key):
            return Opened(sid, env, task_key)
        case Stepped(_, text):
            try:
                return StepOutcome(*json_value("the observation", text, _STEP))
            except FrameError as exc:
                return failure("bad_output", str(exc), ran="yes")
    raise FrameError(f"{type(message).__name__} is no answer")
