"""An episode that a person plays: what is shown, what is asked, what is called."""

from __future__ import annotations

import contextlib
import json
import random
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ors.cli.asking import Cancelled, ask, ask_choice, ask_input
from ors.cli.blocks import Gallery, show_blocks
from ors.cli.errors import CommandError
from ors.cli.fields import Field
from ors.cli.picking import count_of, pick_environment, pick_split
from ors.cli.showing import number, plain, shortened, waiting
from ors.client import ORS, Environment, Session
from ors.errors import ClientError, SessionLost, ToolCallError, ToolFailed
from ors.types import TerminalToolSpec, ToolOutput, ToolSpec

__all__ = ["Playing", "choose"]

_HELP = (
    "a number or a name calls that tool; a name with JSON after it calls it at once\n"
    "p  the prompt again     t  the tools with their parameters     q  leave"
)


def choose(
    screen: Console,
    client: ORS,
    env: str | None,
    split: str | None,
    index: int | None,
    task: Mapping[str, Any] | None,
) -> tuple[Environment, dict[str, Any]]:
    """The environment and the task to play; asks where there are several. Raises CommandError."""
    names = client.environments.list()
    try:
        if env is None and len(names) > 1:
            env = ask_choice(screen, "Which environment?", names)
        environment = pick_environment(client, env)
        if task is not None:
            return environment, {"task": task}
        splits = environment.list_splits()
        if not splits:
            raise CommandError(f"{environment.name} has no split; give a task with --task")
        if split is None and len(splits) > 1 and index is None:
            split = ask_choice(screen, "Which split?", [one.name for one in splits], splits[0].name)
        chosen = pick_split(environment, split) if split is not None or len(splits) == 1 else splits[0]
    except Cancelled:
        raise CommandError("nothing was chosen; name what to play with --env, --split and --index") from None
    if index is None:
        count = count_of(environment, chosen)
        if count == 0:
            raise CommandError(f"split {chosen} of {environment.name} has no tasks")
        index = random.randrange(count if count is not None else 1000)  # noqa: S311 - no secret
    return environment, {"split": chosen.name, "index": index}


class Playing:
    """One episode."""

    def __init__(
        self,
        screen: Console,
        source: str,
        environment: Environment,
        where: dict[str, Any],
        secrets: Mapping[str, str],
        images: Path | None,
    ) -> None:
        self._screen = screen
        self._source = source
        self._environment = environment
        self._where = where
        self._secrets = secrets
        self._images = images
        self._calls = 0
        self._began = time.monotonic()
        self._session: Session | None = None
        self._lost = False

    def run(self) -> bool:
        """Play until the episode is finished or left. False: it broke."""
        with waiting(self._screen, "Opening a session"):
            session = self._environment.session(**self._where, secrets=self._secrets or None)
            session.__enter__()
        try:
            self._session = session
            with self._gallery() as gallery:
                self._play(session, gallery)
        finally:
            session.close()
        self._sum_up(session)
        return not self._lost

    def leave(self) -> None:
        """The person pressed Ctrl-C."""
        self._screen.print()
        if self._session is not None:
            self._sum_up(self._session)

    @contextlib.contextmanager
    def _gallery(self) -> Iterator[Gallery]:
        """Where images go: a folder that stays, or one that is gone with the episode."""
        if self._images is not None:
            self._images.mkdir(parents=True, exist_ok=True)
            yield Gallery(self._images)
            return
        with tempfile.TemporaryDirectory(prefix="ors-play-") as folder:
            yield Gallery(Path(folder))

    def _play(self, session: Session, gallery: Gallery) -> None:
        prompt = session.get_prompt()
        tools = _with_terminal(session.list_tools(), session.terminal_tool())
        self._screen.print(Rule(self._title(), align="left", style="dim"))
        show_blocks(self._screen, prompt, gallery)
        self._screen.print(Rule(style="dim"))
        if not tools:
            self._screen.print("There is no tool to call.")
            return
        told = False
        while not session.finished and not self._lost:
            if not told:
                self._list(tools)
                told = True
            try:
                word = ask("> ").strip()
            except Cancelled:
                return
            if word in ("q", "quit", "exit"):
                return
            if word in ("?", "h", "help"):
                self._screen.print(Text(_HELP, "dim"))
            elif word == "p":
                show_blocks(self._screen, prompt, gallery)
            elif word == "t":
                self._list(tools, parameters=True)
            elif chosen := self._chosen(word, tools):
                self._call(session, gallery, *chosen)

    def _title(self) -> Text:
        name = plain(self._environment.name)
        if "task" in self._where:
            return Text(f"{name}, a task of your own", "bold")
        return Text(f"{name}, task {self._where['index']} of {plain(self._where['split'])}", "bold")

    def _again(self) -> str:
        """The words of the command line that play this very task."""
        words = ["ors", "play", self._source, "--env", self._environment.name]
        if "task" in self._where:
            return shlex.join([*words, "--task", json.dumps(self._where["task"])])
        return shlex.join([*words, "--split", self._where["split"], "--index", str(self._where["index"])])

    def _list(self, tools: Sequence[ToolSpec], *, parameters: bool = False) -> None:
        grid = Table.grid(padding=(0, 2))
        for place, tool in enumerate(tools, 1):
            said = Text(plain(tool.description.strip() if parameters else tool.description.partition("\n\n")[0]))
            for field in (Field.all_of(tool.input_schema) or ()) if parameters else ():
                words = f"\n{field.name}: {field.told}" + (f". {field.description}" if field.description else "")
                said.append(plain(words), "dim")
            grid.add_row(f"{place:>3}", Text(plain(tool.name), "cyan"), said)
        self._screen.print(grid)
        if not parameters:
            how = "Enter calls it" if len(tools) == 1 else "a number or a name"
            self._screen.print(Text(f"     {how}; ? for more, q to leave", "dim"))

    def _chosen(self, word: str, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, dict[str, Any]] | None:
        """The tool that was named, and its input: what stood after the name, or what the form asks for."""
        if not word and len(tools) == 1:
            word = tools[0].name
        if not word:
            return None
        name, _, rest = word.partition(" ")
        tool = next((one for one in tools if one.name == name), None)
        if tool is None and name.isdigit() and 1 <= int(name) <= len(tools):
            tool = tools[int(name) - 1]
        if tool is None:
            similar = [one for one in tools if one.name.lower().startswith(name.lower())]
            if len(similar) != 1:
                self._screen.print(Text(f"there is no tool {plain(name)!r}; ? for help", "red"))
                return None
            tool = similar[0]
        if rest.strip():
            try:
                given = json.loads(rest)
            except ValueError as exc:
                self._screen.print(Text(f"what stands after the name is no JSON: {exc}", "red"))
                return None
            if not isinstance(given, dict):
                self._screen.print(Text("the input of a tool is a JSON object", "red"))
                return None
            return tool, given
        try:
            return tool, ask_input(self._screen, tool)
        except Cancelled:
            self._screen.print(Text("not called", "dim"))
            return None

    def _call(self, session: Session, gallery: Gallery, tool: ToolSpec, given: dict[str, Any]) -> None:
        self._calls += 1
        try:
            with waiting(self._screen, f"Calling {plain(tool.name)}"):
                output = session.call_tool(tool.name, given)
        except ToolCallError as exc:
            self._screen.print(Text(plain(exc.detail), "yellow"))
            return
        except ToolFailed as exc:
            self._screen.print(Text(f"the tool broke ({exc.kind or 'no kind'}): {plain(exc.detail)}", "red"))
            return
        except SessionLost as exc:
            self._lost = True
            self._screen.print(Text(f"the session is lost ({exc.kind}): {plain(exc.detail)}", "red"))
            return
        except ClientError as exc:
            self._screen.print(Text(f"the call failed: {plain(exc.detail)}", "red"))
            return
        show_blocks(self._screen, output.blocks, gallery)
        self._show_reward(session, output)

    def _show_reward(self, session: Session, output: ToolOutput) -> None:
        if output.metadata:
            room = max(40, self._screen.width - 12)
            self._screen.print(Text(f"metadata {shortened(json.dumps(output.metadata, default=str), room)}", "dim"))
        if output.reward is not None:
            colour = "green" if output.reward > 0 else "red" if output.reward < 0 else "yellow"
            total = f"   {number(session.rewards.sum, '{:g}')} in all" if len(session.rewards) > 1 else ""
            self._screen.print(Text.assemble((f"reward {output.reward:+g}", f"bold {colour}"), (total, "dim")))

    def _sum_up(self, session: Session) -> None:
        rewards = session.rewards
        state = "finished" if session.finished else "lost" if self._lost else "left before its end"
        words = [f"{self._calls} {'call' if self._calls == 1 else 'calls'}"]
        if rewards:
            words.append(f"reward {number(rewards.sum, '{:g}')}")
            if len(rewards) > 1:
                words[-1] += f" (last {number(rewards.last, '{:g}')}, greatest {number(rewards.max, '{:g}')})"
        else:
            words.append("no reward")
        words.append(f"{time.monotonic() - self._began:.0f} s")
        self._screen.print(Rule(style="dim"))
        self._screen.print(Text.assemble(("The episode is ", ""), (state, "bold"), f": {', '.join(words)}."))
        self._screen.print(Text(f"This task again: {self._again()}", "dim"), soft_wrap=True)


def _with_terminal(tools: list[ToolSpec], terminal: TerminalToolSpec | None) -> list[ToolSpec]:
    """The tools, with the one that takes an agent's final message, which is not listed among them."""
    if terminal is None or any(tool.name == terminal.name for tool in tools):
        return tools
    schema = None
    if terminal.arg:
        schema = {"type": "object", "properties": {terminal.arg: {"type": "string"}}, "required": [terminal.arg]}
    words = terminal.description or "End the episode with a message."
    return [*tools, ToolSpec(name=terminal.name, description=words, input_schema=schema)]
