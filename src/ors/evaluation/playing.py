"""One episode, from its opening to its result."""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ors.client import AsyncORS
from ors.errors import ClientError, ToolCallError
from ors.evaluation.agents import Agent
from ors.evaluation.jobs import Job
from ors.evaluation.results import Failure, Result
from ors.evaluation.sessions import AgentSession, Stopped

__all__ = ["Limits", "play"]

_MOST_WORDS = 2000


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds an episode. seconds: past them it has failed. calls: before one more, the agent is stopped."""

    seconds: float | None = None
    calls: int | None = None


async def play(
    client: AsyncORS, agent: Agent, job: Job, limits: Limits, secrets: Mapping[str, str] | None = None
) -> Result:
    """Play an episode and return what came of it, whatever that is."""
    result = Result.of(job)
    result.started = time.time()
    began = time.perf_counter()
    try:
        async with asyncio.timeout(limits.seconds) as limit:
            await _play(client, agent, job, limits, secrets, result)
    except Exception as exc:
        late = isinstance(exc, TimeoutError) and limit.expired()
        if not late:
            _fail(result, exc)
        elif result.finished:
            result.warning = f"the agent was not done after {limits.seconds:g} s"
        else:
            result.failure = Failure("episode_timeout", f"not over after {limits.seconds:g} s")
    result.seconds = time.perf_counter() - began
    return result


async def _play(
    client: AsyncORS, agent: Agent, job: Job, limits: Limits, secrets: Mapping[str, str] | None, result: Result
) -> None:
    env = client.environment(job.key.env)
    place: dict[str, Any] = {"split": job.key.split, "index": job.key.task} if job.task is None else {"task": job.task}
    async with env.session(secrets=secrets, **place) as opened:
        result.session = opened.sid
        result.task_key = opened.task_key
        session = AgentSession(opened, job, result, limits.calls)
        raised: BaseException | None = None
        try:
            await agent.play(session, job, result)
        except (Exception, Stopped, SystemExit, BaseExceptionGroup) as exc:
            raised = exc
        finally:
            result.finished = opened.finished
        _judge(result, session.broken, raised)


def _judge(result: Result, broken: ClientError | None, raised: BaseException | None) -> None:
    """Say whether an episode was played. broken: the first fault of the server's; raised: what the agent raised."""
    if broken is not None and broken.kind == "bad_reward":
        _fail(result, broken)
    elif result.finished:
        # it was scored: what its agent does afterwards does not change that
        result.warning = _words(raised) if raised is not None and not result.stopped else None
    elif result.stopped:
        pass
    elif broken is not None and (raised is None or _comes_from(raised, broken)):
        # also where the agent caught it and gave up: then nothing was found out about the agent
        _fail(result, broken)
    elif raised is not None:
        _fail(result, raised)


def _comes_from(raised: BaseException, cause: BaseException) -> bool:
    """Whether an exception is another, or was raised about it."""
    seen: set[int] = set()
    ahead: list[BaseException | None] = [raised]
    while ahead:
        exc = ahead.pop()
        if exc is cause:
            return True
        if exc is not None and id(exc) not in seen:
            seen.add(id(exc))
            ahead += [exc.__cause__, exc.__context__, *getattr(exc, "exceptions", ())]
    return False


def _fail(result: Result, reason: BaseException) -> None:
    if isinstance(reason, ToolCallError):
        result.failure = Failure("call_refused", f"the agent did not catch: {_words(reason)}")
    elif isinstance(reason, ClientError):
        kind = reason.kind or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(reason).__name__).lower()
        result.failure = Failure(kind, reason.detail[:_MOST_WORDS])
    else:
        result.failure = Failure("agent_raised", _words(reason))


def _words(exc: BaseException) -> str:
    said = exc.detail if isinstance(exc, ClientError) else str(exc)
    words = f"{type(exc).__name__}: {said}" if said else type(exc).__name__
    frames = [
        frame for frame in traceback.extract_tb(exc.__traceback__) if not frame.filename.startswith(str(_OUR_OWN))
    ]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return words[:_MOST_WORDS] + where


_OUR_OWN = Path(__file__).parents[1]
