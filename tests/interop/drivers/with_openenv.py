"""The clients of the `openenv` package, unchanged.

with_openenv.py JSON: a list of scenarios, each with its URL and what else it takes. Prints what came of each as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openenv.core import EnvClient, GenericEnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.mcp_client import MCPToolClient


class Move(Action):
    do: str = "add"
    number: int = 0
    value: Any = None


class Seen(Observation):
    total: int = 0
    filling: Any = None


class Adder(EnvClient[Move, Seen, State]):
    """Typed, as those of the hub are."""

    def _step_payload(self, action: Move) -> dict[str, Any]:
        return action.model_dump(exclude={"metadata"})

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Seen]:
        # the observation has exactly the fields of its model: one more would be refused here
        seen = Seen(**payload["observation"], reward=payload.get("reward"), done=payload.get("done", False))
        return StepResult(observation=seen, reward=payload.get("reward"), done=payload.get("done", False))

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)


def error_of(work: Any) -> str:
    try:
        work()
    except Exception as exc:
        return f"{type(exc).__name__}: {exc}"
    return "nothing was raised"


def typed(url: str) -> Any:
    with Adder(base_url=url).sync() as env:
        begun = env.reset(seed=3, episode_id="theirs")
        stepped = env.step(Move(number=4))
        told = env.step(Move(do="told"))
        state = env.state()
        ended = env.step(Move(do="end"))
        again = env.reset()
        return {
            "begun": [begun.observation.total, begun.reward, begun.done],
            "stepped": [stepped.observation.total, stepped.reward],
            "metadata": told.observation.metadata,
            "state": [state.episode_id, state.step_count, state.total],
            "ended": [ended.reward, ended.done],
            "again": again.observation.total,
        }


def errors(url: str) -> Any:
    with GenericEnvClient(base_url=url).sync() as env:
        env.reset()
        return {
            "fails": error_of(lambda: env.step({"do": "fail"})),
            "invalid": error_of(lambda: env.step({"number": "x"})),
            "after": env.step({"number": 2}).observation["total"],
        }


def capacity(url: str) -> Any:
    with GenericEnvClient(base_url=url).sync() as one:
        one.reset()
        with GenericEnvClient(base_url=url).sync() as other:
            refused = error_of(other.reset)
    with GenericEnvClient(base_url=url).sync() as third:
        return {"refused": refused, "after": third.reset().done}


def large(url: str) -> Any:
    with GenericEnvClient(base_url=url).sync() as env:
        env.reset()
        sizes = (10, 100_000, 20_000_000)
        return [len(env.step({"do": "fill", "value": size}).observation["filling"]) for size in sizes]


def tools(url: str) -> Any:
    with MCPToolClient(base_url=url).sync() as env:
        begun = env.reset()
        listed = [tool.name for tool in env.list_tools()]
        return {
            "begun": begun.observation.metadata if hasattr(begun.observation, "metadata") else begun.observation,
            "listed": listed,
            "sums": [env.call_tool("add", a=number, b=1) for number in range(3)],
            "failed": error_of(lambda: env.call_tool("fail")),
            "unknown": error_of(lambda: env.call_tool("nobody")),
            "steps": env.state().step_count,
        }


def episode(url: str, start: dict[str, Any], calls: list[list[Any]]) -> Any:
    """An episode of an environment of tools: the rewards of its calls, and whether it is over."""
    with GenericEnvClient(base_url=url).sync() as env:
        env.reset(**start)
        rewards = []
        for name, arguments in calls:
            result = env.step({"type": "call_tool", "tool_name": name, "arguments": arguments})
            rewards.append(result.reward)
        return [rewards, result.done]


def verifiers(url: str) -> Any:
    """What the task set of verifiers asks, in its order: the schema over HTTP, tools before a reset, steps as dicts."""
    import httpx

    client = GenericEnvClient(base_url=url)
    base = client._base_url.replace("ws://", "http://")
    action = httpx.get(f"{base}/schema").raise_for_status().json()["action"]
    told: dict[str, Any] = {"title": action["title"], "required": action.get("required", [])}
    with client.sync() as env:
        if action["title"] in ("Action", "CallToolAction", "ListToolsAction"):
            told["tools"] = [tool["name"] for tool in env.step({"type": "list_tools"}).observation["tools"]]
        rewards = []
        for seed in range(2):
            env.reset(seed=seed)
            paid, done = 0.0, False
            for number in range(3):
                if "tools" in told:
                    call = {"type": "call_tool", "tool_name": "add", "arguments": {"a": number}}
                else:
                    call = {"do": "end" if number == 2 else "add", "number": number}
                result = env.step(call)
                paid, done = paid + (result.reward or 0.0), done or result.done
            rewards.append([paid, done])
    return {**told, "rewards": rewards}


class Trained:
    """The class that TRL's documentation has its users write: one for each generation, with a client of its own."""

    def __init__(self, url: str) -> None:
        self.client = Adder(base_url=url).sync()
        self.reward = 0.0

    def reset(self, **columns: Any) -> str | None:
        result = self.client.reset(seed=columns["seed"])
        self.reward, self.done = 0.0, False
        return f"The total is {result.observation.total}."

    def add(self, number: int) -> str:
        """Add a number."""
        result = self.client.step(Move(number=number))
        return f"The total is {result.observation.total}."

    def finish(self) -> str:
        """End the episode."""
        result = self.client.step(Move(do="end"))
        self.reward, self.done = self.reward + (result.reward or 0.0), result.done
        return "Done."


def trl(url: str, number: int) -> Any:
    """A batch of generations, reset again for each episode, called in plain synchronous style from one thread."""
    trained = [Trained(url) for _ in range(number)]
    told = []
    for episode in range(2):
        prompts = [one.reset(seed=index) for index, one in enumerate(trained)]
        for turn in range(2):
            said = [one.add(index + turn) for index, one in enumerate(trained)]
        ended = [one.finish() for one in trained]
        right = [f"The total is {2 * index + 1}." for index in range(number)]
        told.append([set(prompts) == {"The total is 0."}, said == right, set(ended) == {"Done."}])
        told[-1] += [[one.reward for one in trained] == [1.0] * number, all(one.done for one in trained)]
    for one in trained:
        one.client.close()
    return told


def many(url: str, number: int) -> Any:
    async def play(index: int) -> float:
        async with GenericEnvClient(base_url=url, connect_timeout_s=60, message_timeout_s=60) as env:
            await env.reset(seed=index)
            await gathered.wait()
            total = 0
            for step in range(5):
                total = (await env.step({"number": index + step})).observation["total"]
            state = await env.state()
            assert state["seed"] == index, (state, index)
            return total - (5 * index + 10)

    async def main() -> Any:
        playing = [asyncio.ensure_future(play(index)) for index in range(number)]
        gathered.set()
        return await asyncio.gather(*playing, return_exceptions=True)

    gathered = asyncio.Event()
    outcomes = asyncio.run(main())
    wrong = [repr(outcome) for outcome in outcomes if outcome != 0]
    return {"played": len(outcomes), "wrong": len(wrong), "first": wrong[:3]}


if __name__ == "__main__":
    print(json.dumps([globals()[scenario](url, *more) for scenario, url, *more in json.loads(sys.argv[1])]))
