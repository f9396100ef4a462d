"""An episode of an `ors.Environment`, played step by step as a server does."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from ors.adapters.ors_output import prompt_document, tool_outcome
from ors.core.failures import Failure
from ors.environment import Environment
from ors.testing.chance import seed_generators
from ors.testing.judge import Judge, said
from ors.testing.task_rules import plain, same
from ors.testing.tool_rules import call_tool, tools_to_call
from ors.tools import ToolDefinition

__all__ = ["TOOLS_AT_MOST", "Play", "Sentinels", "solo"]

TOOLS_AT_MOST = 16
Transcript = list[Any]


class Sentinels(dict[str, str]):
    """Secrets of whatever name is asked for, each of which can be found again."""

    def __missing__(self, name: str) -> str:
        value = self[name] = f"ors-check-{name}-{id(self):x}"
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True


class Play:
    """One instance, asked for one thing after another; `None` stands for what went wrong, which is complained of.

    Before each, the generators that a process shares are seeded by the play's name and step: an environment that draws
    from them is played twice in the same way, whatever else is played beside it.
    """

    def __init__(self, judge: Judge, task: Any, secrets: Mapping[str, str], name: str = "one") -> None:
        self.judge = judge
        self._name, self._steps = name, 0
        # as it comes from JSON; what is none is another rule's affair
        self.task = plain(copy.deepcopy(task))
        self._given = copy.deepcopy(self.task)
        self._changed_by = ""
        self.secrets = secrets
        self.env: Environment | None = None
        self.transcript: Transcript = []
        self.texts: list[str] = []
        self.outputs: list[tuple[str, str]] = []
        self.printed: list[tuple[str, str]] = []
        """What was printed and logged, by the method that was running."""
        self._read = len(judge.stage.printed.getvalue())

    async def open(self) -> bool:
        """The constructor and `setup`. False where either failed; then it has been torn down."""
        judge = self.judge
        judge.looked_at("constructor", "setup")
        self._seed()
        try:
            env = await judge.stage.run(
                judge.cls,
                task_spec=self.task,
                secrets=self.secrets if type(self.secrets) is Sentinels else dict(self.secrets),
            )
        except Exception as exc:
            judge.complain("constructor", f"it raises {said(exc)}", "__init__", exc)
            return False
        finally:
            self._listen("__init__")
        self.env = env
        self._seed()
        try:
            await judge.stage.run(env.setup)
        except Exception as exc:
            judge.complain("setup", f"it raises {said(exc)}", "setup", exc)
            self._listen("setup")
            await self.close()
            return False
        self._listen("setup")
        return True

    def _seed(self) -> None:
        self._steps += 1
        seed_generators(f"{self._name} {self._steps}")

    def _listen(self, method: str) -> None:
        """Remember what a method printed, and whether it changed the task."""
        if not self._changed_by and not same(self.task, self._given):
            self._changed_by = method
        printed = self.judge.stage.printed.getvalue()
        if len(printed) > self._read:
            self.printed.append((method, printed[self._read :]))
            self._read = len(printed)

    async def prompt(self) -> bytes | None:
        """The prompt as it is sent."""
        judge, env = self.judge, self.env
        assert env is not None
        judge.looked_at("prompt", "prompt-empty")
        self._seed()
        try:
            value = await judge.stage.run(env.get_prompt)
        except Exception as exc:
            judge.complain("prompt", f"it raises {said(exc)}", "get_prompt", exc)
            return None
        finally:
            self._listen("get_prompt")
        document = prompt_document("it", value)
        if isinstance(document, Failure):
            judge.complain("prompt", document.detail.removeprefix("it "), "get_prompt")
            return None
        blocks = json.loads(document.body)
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        if not any(text.strip() for text in texts) and len(texts) == len(blocks):
            judge.complain("prompt-empty", "it says nothing", "get_prompt")
        self.texts += texts
        self.transcript.append(document.body.decode())
        return document.body

    async def tool(self, spec: Any) -> Any:
        """Call a tool."""
        assert self.env is not None
        self._seed()
        output = await call_tool(self.judge, self.env, spec)
        outcome = tool_outcome(spec.name, output) if output is not None else None
        body = getattr(outcome, "body", b"").decode()
        if body:
            self.outputs.append((spec.name, json.dumps(json.loads(body), ensure_ascii=False)))
        self._listen(spec.name)
        self.transcript.append((spec.name, body))
        return output

    async def close(self) -> None:
        """`teardown`."""
        if self.env is not None:
            env, self.env = self.env, None
            await self.judge.attempt("teardown", "teardown", env.teardown)
            self._listen("teardown")
            self.judge.looked_at("spec-changed")
            if not same(self.task, self._given):
                keys = [key for key in self._given if not same(self.task.get(key), self._given[key])]
                keys += [key for key in self.task if key not in self._given]
                self.judge.complain("spec-changed", f"it changes {', '.join(map(repr, keys))}", self._changed_by)


async def solo(judge: Judge, task: Any, table: dict[str, ToolDefinition], secrets: Mapping[str, str]) -> Play:
    """An episode in which each tool is called until one ends it."""
    play = Play(judge, task, secrets)
    if await play.open():
        await play.prompt()
        assert play.env is not None
        for spec in (await tools_to_call(judge, play.env, table))[:TOOLS_AT_MOST]:
            output = await play.tool(spec)
            if output is not None and output.finished:
                break
        await play.close()
    return play
