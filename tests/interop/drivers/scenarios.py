"""What both clients are made to do; runs inside a peer's virtual environment.

A driver reads requests from standard input, one JSON object a line (`{"url", "scenario", "sync", "args"}`), and answers
each with one line: `{"report": …}` or `{"crash": …}`. A report says what the client handed out; it judges nothing.
Texts and images are reported by their hash.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import os
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

sys.path.append(str(Path(__file__).resolve().parent.parent))
from texts import sha256, text_of

SHORT = 2_000
"""Texts up to this length are reported as they are."""


class Client(Protocol):
    """A peer's client for one server."""

    def environment(self, name: str, variant: str | None = None) -> Any: ...

    def task(self, env_name: str, spec: dict[str, Any]) -> Any: ...

    def secrets(self, given: dict[str, str]) -> Any: ...


Scenario = Callable[..., Awaitable[Any]]
COMMON: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Register what is to be done under its name."""
    COMMON[function.__name__] = function
    return function


class Awaited:
    """A synchronous client, environment or session, driven as if it were asynchronous, in threads of its own."""

    def __init__(self, inner: Any, pool: ThreadPoolExecutor) -> None:
        self._inner, self._pool = inner, pool

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value
        if name in ("session", "environment"):
            # in the pool too: one of the clients drives its loop even to look an environment up
            return lambda *args, **kwargs: Awaited(self._pool.submit(value, *args, **kwargs).result(), self._pool)
        return lambda *args, **kwargs: self._later(lambda: value(*args, **kwargs))

    async def _later(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def __aenter__(self) -> Awaited:
        await self._later(self._inner.__enter__)
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._later(lambda: self._inner.__exit__(*exc))


def plain(value: Any) -> Any:
    """What a client handed out, as JSON: dataclasses as objects, long texts and images by their hash."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str) and len(value) > SHORT:
        return {"sha256": sha256(value), "length": len(value)}
    return value


async def attempt(work: Awaitable[Any]) -> dict[str, Any]:
    """The outcome of one action: its value, or what the client raised, and how long it took."""
    start = time.monotonic()
    try:
        outcome: dict[str, Any] = {"value": plain(await work)}
    except Exception as exc:
        reason, status = getattr(exc, "reason", None), getattr(exc, "status", None)
        outcome = {"error": type(exc).__name__, "text": str(exc), "reason": reason, "status": status}
    return {**outcome, "took": time.monotonic() - start}


@scenario
async def queries(client: Client, name: str, variant: str | None, split: str, index: int) -> Any:
    """Every query that an environment has."""
    env = client.environment(name, variant)
    report = {
        "list_splits": await attempt(env.list_splits()),
        "list_tasks": await attempt(env.list_tasks(split)),
        "num_tasks": await attempt(env.num_tasks(split)),
        "get_task": await attempt(env.get_task(split, index)),
    }
    for start, stop in ((None, None), (1, 3), (-2, None), (None, -3), (2, 2), (3, 10**9)):
        report[f"get_task_range {start} {stop}"] = await attempt(env.get_task_range(split, start, stop))
    for form in (None, "openai", "anthropic", "google", "openrouter"):
        report[f"list_tools {form}"] = await attempt(env.list_tools(form))
    return report


@scenario
async def task_queries(client: Client, name: str, variant: str | None, calls: list[list[Any]]) -> Any:
    """Chosen queries: [method, arguments …]."""
    env = client.environment(name, variant)
    return await asyncio.gather(*(attempt(getattr(env, method)(*args)) for method, *args in calls))


@scenario
async def listed_episode(client: Client, name: str, variant: str | None, split: str, index: int) -> Any:
    """One session by a task that was asked for before, with every query that a session has."""
    env = client.environment(name, variant)
    task = await env.get_task(split, index)
    async with env.session(task) as session:
        report = {"sid": session.sid, "task": plain(session.task), "prompt": await attempt(session.get_prompt())}
        for form in (None, "openai", "anthropic", "google", "openrouter"):
            report[f"list_tools {form}"] = await attempt(session.list_tools(form))
    return report


@scenario
async def episodes(client: Client, name: str, variant: str | None, count: int, at_once: int) -> Any:
    """Whole episodes, so many of them at the same time: prompt, tools, three calls, the answer, one call too many."""
    env = client.environment(name, variant)
    slots, peak, running = asyncio.Semaphore(at_once), 0, 0

    async def episode(index: int) -> Any:
        nonlocal peak, running
        async with slots, env.session(split="test", index=index) as session:
            running += 1
            peak = max(peak, running)
            prompt = plain(await session.get_prompt())
            tools = [spec.name for spec in await session.list_tools()]
            hint = plain(await session.call_tool("hint"))
            guess = plain(await session.call_tool("guess", {"answer": f"  {index}"}))
            text = plain(await session.call_tool("text", {"kind": "indented", "size": 20_000, "seed": index}))
            last = plain(await session.call_tool("submit", {"answer": str(2 * index)}))
            late = await attempt(session.call_tool("submit", {"answer": str(2 * index)}))
            running -= 1
            return {
                "sid": session.sid, "prompt": prompt, "tools": tools, "hint": hint, "guess": guess, "text": text,
                "submit": last, "late": late,
            }  # fmt: skip

    start = time.monotonic()
    played = await asyncio.gather(*(attempt(episode(index)) for index in range(count)))
    return {"episodes": played, "peak": peak, "took": time.monotonic() - start}


@scenario
async def calls(
    client: Client, name: str, variant: str | None, sessions: list[list[Any]], secrets: dict[str, str] | None = None
) -> Any:
    """Sessions side by side, each on any task: [task, [tool, input], …]; the tool "prompt" asks for the prompt."""
    env = client.environment(name, variant)
    more = {"secrets": client.secrets(secrets)} if secrets else {}

    async def play(spec: dict[str, Any], *actions: list[Any]) -> Any:
        report = []
        async with env.session(client.task(variant or name, spec), **more) as session:
            for tool, *arguments in actions:
                asked = session.get_prompt() if tool == "prompt" else session.call_tool(tool, *arguments)
                report.append(await attempt(asked))
        return report

    return await asyncio.gather(*(play(*session) for session in sessions))


@scenario
async def session_by_index(client: Client, name: str, variant: str | None, split: str, index: int, tool: str) -> Any:
    """A session by split and index on an environment by its name: what is it really?"""

    async def play() -> Any:
        async with client.environment(name, variant).session(split=split, index=index) as session:
            asked = {"prompt": session.get_prompt(), "tools": session.list_tools(), "call": session.call_tool(tool)}
            outcomes = await asyncio.gather(*(attempt(work) for work in asked.values()))
            return dict(zip(asked, outcomes, strict=True))

    return await attempt(play())


@scenario
async def race(client: Client, tool: str, given: dict[str, Any], runners: int) -> Any:
    """The same call many times at once in one session."""
    async with client.environment("probe").session(client.task("probe", {})) as session:
        return await asyncio.gather(*(attempt(session.call_tool(tool, given)) for _ in range(runners)))


@scenario
async def images(client: Client, sizes: list[int]) -> Any:
    """Images, decoded and hashed."""
    report = []
    async with client.environment("probe").session(client.task("probe", {})) as session:
        for size in sizes:
            output = await session.call_tool("image", {"kind": "", "size": size, "seed": size})
            (block,) = output.blocks
            data = base64.b64decode(block.data, validate=True)
            report.append({"sha256": sha256(data), "size": len(data), "mime": block.mimeType})
    return report


@scenario
async def echoes(client: Client, texts: list[list[Any]], values: list[Any]) -> Any:
    """Texts and values there and back: the hashes of both ways."""
    report = []
    async with client.environment("probe").session(client.task("probe", {})) as session:
        for text, value in [(text_of(*spec), None) for spec in texts] + [("", value) for value in values]:
            output = await session.call_tool("echo", {"text": text, "value": value})
            back = output.metadata["value"]
            same = json.dumps(back, sort_keys=True) == json.dumps(value, sort_keys=True)
            report.append({"sent": sha256(text), "back": sha256(output.blocks[0].text), "value": same})
    return report


@scenario
async def secrets(client: Client, given: dict[str, str], split: str | None) -> Any:
    """Secrets, for a session by task or by index."""
    env = client.environment("probe")
    how = {"split": split, "index": 0} if split else {"task": client.task("probe", {})}
    async with env.session(**how, secrets=client.secrets(given)) as session:
        output = await session.call_tool("secrets", {})
        return json.loads(output.blocks[0].text)


@scenario
async def lifetime(client: Client, token: str, leave: str) -> Any:
    """A session that ends in a certain way ("exit", "error", "exit during setup"), then what became of its episode."""
    env = client.environment("probe")
    task = client.task("probe", {"token": token, "setup_s": 30 if leave == "exit during setup" else 0})

    async with env.session(client.task("probe", {})) as witness:

        async def lived(until: str) -> list[str]:
            deadline = time.monotonic() + 10
            while True:
                events = json.loads((await witness.call_tool("lived", {"token": token})).blocks[0].text)
                if events[-1:] == [until] or time.monotonic() > deadline:
                    return list(events)
                await asyncio.sleep(0.05)

        async def play() -> None:
            async with env.session(task) as session:
                if leave == "exit during setup":
                    # creation may be answered before there is anything to tear down
                    await lived("made")
                else:
                    await session.call_tool("hint")
                if leave == "error":
                    raise ValueError("the harness has a fault")

        return {"left": await attempt(play()), "lived": await lived("gone")}


@scenario
async def patience(client: Client, setup_s: float, tool_s: float, idle_s: float) -> Any:
    """All at once: a call and the prompt straight after creation, calls that take long, and a session left alone."""
    env = client.environment("probe")

    async def first(action: str, task: dict[str, Any]) -> Any:
        async with env.session(client.task("probe", task)) as session:
            asked = session.get_prompt() if action == "prompt" else session.call_tool(action, {"seconds": tool_s})
            return {"first": await attempt(asked), "waited": await attempt(session.call_tool("waited"))}

    async def quick() -> Any:
        async with env.session(client.task("probe", {"setup_s": setup_s})) as session:
            asked = session.call_tool("wait", {"seconds": 0})
            return {"first": await attempt(asked), "waited": await attempt(session.call_tool("waited"))}

    async def idle() -> Any:
        async with env.session(client.task("probe", {})) as session:
            before = await attempt(session.call_tool("wait", {"seconds": 0}))
            # nothing is asked in the meantime: only the client's own pings tell the server that it is there
            await asyncio.sleep(idle_s)
            return {"before": before, "after": await attempt(session.call_tool("waited"))}

    asked = {
        "idle": idle(),
        "call during setup": quick(),
        "prompt during setup": first("prompt", {"setup_s": setup_s}),
        "slow tool": first("wait", {}),
        "slow plain tool": first("wait_plainly", {}),
    }
    outcomes = await asyncio.gather(*(attempt(work) for work in asked.values()))
    return dict(zip(asked, outcomes, strict=True))


@scenario
async def enter(client: Client) -> Any:
    """Whether the server lets this client in: one query and one short episode."""
    env = client.environment("probe")

    async def play() -> Any:
        async with env.session(split="test", index=1) as session:
            return await session.call_tool("submit", {"answer": "2"})

    return {"query": await attempt(env.num_tasks("test")), "episode": await attempt(play())}


Opener = Callable[[str, bool, str | None], Any]


@asynccontextmanager
async def in_threads(inner: Any, workers: int) -> AsyncIterator[Awaited]:
    """A synchronous client as an asynchronous one."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield Awaited(inner, pool)
    finally:
        pool.shutdown()


def serve(opened: Opener, scenarios: dict[str, Scenario]) -> None:
    """Answer requests until standard input ends."""
    # the clients' libraries log to standard output; only reports may go there
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)

    async def run(request: dict[str, Any]) -> Any:
        async with opened(request["url"], request["sync"], request["key"]) as client:
            return await scenarios[request["scenario"]](client, **request["args"])

    for line in sys.stdin:
        try:
            answer = {"report": asyncio.run(run(json.loads(line)))}
        except Exception:
            answer = {"crash": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)
