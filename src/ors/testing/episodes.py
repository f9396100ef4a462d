"""Playing an episode of an `ors.Environment` as a server does, and the rules about what comes of it."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ors.adapters.ors_environment import ORSOffering
from ors.adapters.ors_output import prompt_document, tool_outcome
from ors.conformance.inputs import make_input
from ors.core.failures import Failure
from ors.errors import ToolError
from ors.testing.inspection import Inspection, words_of
from ors.testing.round_trip import canonical
from ors.testing.stage import Outcome
from ors.tools import InvalidInput
from ors.types import ListToolsOutput, RunToolError, RunToolSuccess, ToolOutput, ToolSpec

__all__ = ["Episode", "seed_generators"]


class Episode:
    """One instance: opened, asked, called and closed. What comes of each step is in `transcript`.

    label: names the session. Before each step the shared random generators are seeded from it, so that an environment
    that draws from them does the same in each episode of that label. quiet: nothing is complained of.
    """

    def __init__(
        self,
        look: Inspection,
        offering: ORSOffering,
        task: Mapping[str, Any],
        where: str,
        *,
        secrets: Mapping[str, str],
        label: str = "one",
        watch: bool = False,
        quiet: bool = False,
    ) -> None:
        self.look, self.offering, self.where = look, offering, where
        self.task: dict[str, Any] = json.loads(json.dumps(task))
        self.before = copy.deepcopy(self.task)
        self.transcript: list[tuple[str, str]] = []
        self.finished = False
        self.called: set[str] = set()
        self._secrets = dict(secrets)
        self._label, self._watch, self._quiet = label, watch, quiet
        self._instance: Any = None
        self._steps = 0
        self._changed_by = ""

    def _complain(self, id: str, message: str, method: str, **options: Any) -> None:
        if not self._quiet:
            self.look.complain(id, message, method, **options)

    def _run(self, method: str, function: Callable[[], Any], owner: type | None = None) -> Outcome:
        self._steps += 1
        seed = f"{self._label} {self._steps}"

        def seeded() -> Any:
            seed_generators(seed)
            return function()

        outcome = self.look.run(method, seeded, watch=self._watch, owner=owner)
        if not self._changed_by and canonical(self.task) != canonical(self.before):
            self._changed_by = method
        return outcome

    def _note(self, step: str, what: Any) -> None:
        self.transcript.append((step, what if isinstance(what, str) else canonical(what)))

    # The steps

    def open(self) -> bool:
        """Construct and set up. Whether that worked."""
        offering = self.offering
        keywords: dict[str, Any] = {"task_spec": self.task, "secrets": self._secrets}
        made: list[Any] = []

        def construct() -> None:
            made.append(offering.cls(**{key: keywords[key] for key in offering.constructor}))

        outcome = self._run("__init__", construct)
        method = "__init__"
        if outcome.error is None:
            self._instance = made[0]
            outcome = self._run("setup", lambda: self._instance.setup())
            method = "setup"
        if not self._quiet:
            self.look.seen("episode-opens")
        if outcome.error is not None:
            self._say_error("episode-opens", outcome.error, method, f"{self.where} cannot be opened: {method} raised ")
            self._note(method, words_of(outcome.error))
            return False
        return True

    def prompt(self) -> tuple[str, int] | None:
        """The text of the prompt and how many blocks it has; None where there is none."""
        outcome = self._run("get_prompt", lambda: self._instance.get_prompt())
        if not self._quiet:
            self.look.seen("prompt-fails", "prompt-empty")
        if outcome.error is not None:
            self._say_error("prompt-fails", outcome.error, "get_prompt", f"for {self.where} it raised ")
            self._note("get_prompt", words_of(outcome.error))
            return None
        document = self.look.run("get_prompt", lambda: prompt_document("get_prompt", outcome.value)).value
        if isinstance(document, Failure):
            self._complain("prompt-fails", f"for {self.where}: {document.detail}", "get_prompt")
            self._note("get_prompt", document.detail)
            return None
        blocks = json.loads(document.body)
        text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        if not text.strip() and all(block["type"] == "text" for block in blocks):
            self._complain("prompt-empty", f"for {self.where} it says nothing", "get_prompt")
        self._note("get_prompt", document.body.decode())
        self.look.check_shown(document.body.decode(), "the prompt", "get_prompt")
        return text, len(blocks)

    def tools(self) -> list[ToolSpec]:
        """The tools of this task, the shared ones first."""
        offering, look = self.offering, self.look
        if not offering.per_task:
            hidden = [
                entry.spec for entry in offering.table.values() if not entry.marks.shared and not entry.marks.terminal
            ]
            return [*offering.listed, *(spec for spec in hidden if spec.name not in offering.shared)]
        outcome = self._run("list_task_tools", lambda: self._instance.list_task_tools())
        if not self._quiet:
            look.seen("tool-listed")
        if outcome.error is not None:
            self._say_error("tool-listed", outcome.error, "list_task_tools", f"for {self.where} it raised ")
            return list(offering.listed)
        specs = outcome.value.tools if hasattr(outcome.value, "tools") else outcome.value
        try:
            data = [spec.model_dump() if hasattr(spec, "model_dump") else spec for spec in specs]
            listed = ListToolsOutput.model_validate({"tools": data}).tools
        except (ValueError, TypeError) as exc:
            said = words_of(exc).partition(" For further information")[0]
            self._complain("tool-listed", f"it returned no list of tools: {said}", "list_task_tools")
            return list(offering.listed)
        names = [spec.name for spec in listed]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            self._complain("tool-listed", f"it lists {', '.join(twice)} more than once", "list_task_tools")
        unknown = [name for name in names if name not in offering.table and not offering.custom_call]
        if unknown:
            words = f"it lists {', '.join(unknown)}, and there is no such tool: every call of it fails"
            self._complain("tool-listed", words, "list_task_tools")
        self._note("list_task_tools", [spec.model_dump() for spec in listed])
        task_tools = {spec.name: spec for spec in listed if spec.name not in offering.shared}
        return [*offering.listed, *(spec for name, spec in task_tools.items() if name not in unknown)]

    def call(self, spec: ToolSpec) -> None:
        """Call a tool with an input that its schema accepts."""
        name, look = spec.name, self.look
        self.called.add(name)
        given = look.options.inputs.get(name)
        value = dict(given) if given is not None else make_input(spec.input_schema)
        if value is None:
            self._note(name, "no input can be made")
            return
        entry = self.offering.table.get(name)
        owner = entry.owner if entry is not None and entry.owner in look.own.classes else None
        if entry is None or self.offering.custom_call:
            outcome = self._run("_call_tool", lambda: self._instance._call_tool(name, value))
            self._judge(name, value, outcome, "_call_tool", None)
            return
        known = entry

        def run() -> Any:
            args, kwargs = known.arguments(value)
            instance = self._instance
            method = getattr(instance if isinstance(instance, known.owner) else instance._tool_owner(known), name)
            return method(*args, **kwargs)

        self._judge(name, value, self._run(name, run, owner), name, owner)

    def call_terminal(self) -> None:
        """Call the terminal tool as a harness does, with the agent's last message."""
        terminal = self.offering.terminal
        if terminal is None:
            return
        entry = self.offering.table.get(terminal)
        owner = entry.owner if entry is not None and entry.owner in self.look.own.classes else None
        outcome = self._run(terminal, lambda: self._instance.call_terminal_tool("I have nothing more to say."))
        self._judge(terminal, {}, outcome, terminal, owner)

    def close(self) -> None:
        """Tear down, and see whether the task is still what it was."""
        if self._instance is None:
            return
        outcome = self._run("teardown", lambda: self._instance.teardown())
        if not self._quiet:
            self.look.seen("episode-teardown", "task-kept")
        if outcome.error is not None:
            self._say_error("episode-teardown", outcome.error, "teardown", f"after {self.where} it raised ")
        if self._changed_by:
            keys = [key for key in self.before if canonical(self.before[key]) != canonical(self.task.get(key))]
            keys += [key for key in self.task if key not in self.before]
            words = f"the episode of {self.where} has changed its task: {', '.join(map(repr, keys))}"
            self._complain("task-kept", words, self._changed_by)
        self._instance = None

    # Judging

    def _say_error(self, id: str, error: BaseException, method: str, words: str, owner: type | None = None) -> None:
        spot = self.look.own.raised_at(error)
        text = words_of(error)
        self.look.check_shown(text, "the message of an error", method, spot=spot, owner=owner)
        self._complain(id, f"{words}{text}", method, spot=spot, owner=owner)

    def _judge(self, name: str, value: Any, outcome: Outcome, method: str, owner: type | None) -> None:
        look = self.look
        if not self._quiet:
            look.seen("tool-raises", "tool-output", "tool-reward", "tool-blocks")
        given = json.dumps(value, ensure_ascii=False, default=str)
        error, output = outcome.error, outcome.value
        if isinstance(error, (ToolError, InvalidInput)):
            self._note(name, words_of(error))
            look.check_shown(str(error), "what the agent is told of an error", method, owner=owner)
            return
        if error is not None:
            self._note(name, words_of(error))
            self._say_error("tool-raises", error, method, f"called as '{name}' with {given:.120} it raised ", owner)
            return
        output = getattr(output, "root", output)
        if isinstance(output, RunToolError):
            self._note(name, output.error)
            look.check_shown(output.error, "what the agent is told of an error", method, owner=owner)
            return
        if isinstance(output, RunToolSuccess):
            output = output.output
        written = tool_outcome(name, output)
        if isinstance(written, Failure):
            reward = isinstance(output, ToolOutput) and "the reward" in written.detail
            id = "tool-reward" if reward else "tool-output"
            self._complain(id, f"called with {given:.120}: {written.detail}", method, owner=owner)
            self._note(name, written.detail)
            return
        if not output.blocks:
            self._complain("tool-blocks", f"called with {given:.120} it returned no block", method, owner=owner)
        body = written.body.decode()
        self._note(name, body)
        look.check_shown(body, f"the output of '{name}'", method, owner=owner)
        self.finished = written.finished


def seed_generators(text: str) -> None:
    """Set the generators that a whole process shares to what the text says."""
    random.seed(text)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(random.getrandbits(32))
        random.seed(text)
