"""The check of an `ors.Environment`: its class, its tasks, its tools, then episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ors.adapters.ors_environment import ORSOffering
from ors.environment import Environment
from ors.errors import AuthoringError
from ors.testing.answers import check_answers
from ors.testing.apart import check_apart
from ors.testing.episodes import Episode
from ors.testing.inspection import Inspection, words_of
from ors.testing.order import check_order
from ors.testing.sampling import spread
from ors.testing.secrecy import names_asked, sentinels
from ors.testing.stage import Outcome
from ors.testing.tasks import METHODS, Found, check_tasks
from ors.testing.tools import check_terminal, check_tools

__all__ = ["check_name", "check_tool_environment"]

Sample = tuple[str, Mapping[str, Any]]
"""Words for a task, and the task."""


def check_tool_environment(look: Inspection) -> None:
    """Check all that there is to check of a class with tools."""
    look.seen("class-served")
    outcome = look.run("", lambda: ORSOffering(look.cls))
    if outcome.error is not None:
        _tell_unservable(look, outcome.error)
        return
    offering: ORSOffering = outcome.value
    check_name(look, offering.spec.name, "name")
    checked: set[str] = set()
    check_tools(look, offering.listed, checked=checked)
    check_terminal(look, offering.listed)
    cls: Any = look.cls

    def call(method: str, *args: Any) -> Outcome:
        return look.run(method, lambda: getattr(cls, method)(*args), watch=True)

    defined = frozenset(
        name for name in METHODS if any(name in vars(base) for base in look.cls.__mro__ if base is not Environment)
    )
    found = check_tasks(look, call, offering.tasks, defined)
    if look.wanted("task-order"):
        check_order(look, found, defined)
    samples = _samples(look, found)
    if not samples:
        look.unseen("there is no task to play", *(id for id in _OF_EPISODES))
        return
    _Play(look, offering, samples, checked).all()


_OF_EPISODES = ("episode-opens", "prompt-fails", "prompt-empty", "prompt-answer", "prompt-same", "class-apart")


def check_name(look: Inspection, name: Any, method: str) -> None:
    """Whether an environment can have this name on a server."""
    look.seen("class-name")
    routes = (
        "ping health ready status metrics version docs create create_session delete delete_session list_environments"
    )
    if not isinstance(name, str) or not name:
        look.complain("class-name", f"the name is {name!r}", method)
    elif name.lower() in routes.split():
        look.complain("class-name", f"the name '{name}' is a route of the server", method)
    elif not all(c.isalnum() or c in "-_." for c in name) or not name.isascii():
        look.complain("class-name", f"the name '{name}' cannot stand in a URL as it is", method)


def _tell_unservable(look: Inspection, error: BaseException) -> None:
    said = str(error) if isinstance(error, AuthoringError) else words_of(error)
    # the message names the method as the class's
    method = ""
    for owner in look.own.classes:
        for name in vars(owner):
            if f"{owner.__name__}.{name}" in said.split(":")[0].replace(";", " ").split():
                method = name
                break
    message, _, mend = said.partition("; ")
    look.otherwise = "the class cannot be served"
    look.complain("class-served", message, method, mend=mend, spot=look.own.raised_at(error) if not method else None)


def _samples(look: Inspection, found: list[Found]) -> list[Sample]:
    """The tasks to play: some of each split, those of the first split first."""
    samples = []
    for one in found:
        indices = list(one.tasks)
        for place in spread(len(indices), look.options.tasks):
            index = indices[place]
            if isinstance(one.tasks[index], Mapping):
                samples.append((f"task {index} of '{one.split}'", one.tasks[index]))
    return samples


class _Play:
    """The episodes of a check."""

    def __init__(self, look: Inspection, offering: ORSOffering, samples: Sequence[Sample], checked: set[str]) -> None:
        self.look, self.offering, self.samples, self.checked = look, offering, samples, checked

    def all(self) -> None:
        """Play each task, then the comparisons, then one with false secrets."""
        look = self.look
        prompts: list[tuple[Mapping[str, Any], str]] = []
        opened: list[Sample] = []
        for number, sample in enumerate(self.samples):
            if number and not look.in_time:
                break
            text = self._whole(sample, watch=number == 0)
            if text is not None:
                prompts.append((sample[1], text))
                opened.append(sample)
            elif look.broken("episode-opens"):
                break  # the others would say the same
        check_answers(look, prompts)
        if opened and look.in_time:
            self._prompt_again(opened[0], prompts[0][1])
            if look.wanted("class-apart", "episode-leaks"):
                check_apart(look, self._make(opened))
        else:
            look.unseen("no episode could be opened", *_OF_EPISODES, "episode-leaks")
        self._with_sentinels()

    def _episode(self, sample: Sample, **options: Any) -> Episode:
        options.setdefault("secrets", self.look.options.secrets)
        return Episode(self.look, self.offering, sample[1], sample[0], **options)

    def _whole(self, sample: Sample, *, watch: bool = False, quiet: bool = False, **options: Any) -> str | None:
        """Play a task until every tool was called, in a second episode where the first was over before that.

        Returns the text of the prompt.
        """
        text: str | None = None
        todo: list[str] | None = None
        while todo is None or todo:
            episode = self._episode(sample, watch=watch, quiet=quiet, **options)
            try:
                if not episode.open():
                    return None
                prompt = episode.prompt()
                if todo is None:
                    text = prompt[0] if prompt is not None else ""
                tools = episode.tools()
                if not quiet:
                    check_tools(self.look, tools, checked=self.checked)
                if todo is None:
                    # the one that ends an episode comes last, if its name says so
                    todo = sorted((spec.name for spec in tools), key=lambda name: name in _ENDING)
                    if self.offering.terminal is not None:
                        todo.append("")
                before = len(todo)
                by_name = {spec.name: spec for spec in tools}
                for name in list(todo):
                    todo.remove(name)
                    if name == "":
                        episode.call_terminal()
                    elif name in by_name:
                        episode.call(by_name[name])
                    if episode.finished:
                        break
                if len(todo) == before or not self.look.in_time:
                    break
            finally:
                episode.close()
        return text

    def _prompt_again(self, sample: Sample, before: str) -> None:
        look = self.look
        look.seen("prompt-same")
        episode = self._episode(sample, label="again", quiet=True)
        try:
            if episode.open() and (prompt := episode.prompt()) is not None and prompt[0] != before:
                look.complain("prompt-same", f"{sample[0]} has another prompt in each episode", "get_prompt")
        finally:
            episode.close()

    def _make(self, opened: Sequence[Sample]) -> Callable[[str, int], Any]:
        return lambda label, task: _Steps(self._episode(opened[min(task, len(opened) - 1)], label=label, quiet=True))

    def _with_sentinels(self) -> None:
        """Play once with values in the place of secrets that nobody gave, and look for them everywhere."""
        look = self.look
        asked = [name for name in names_asked(look.own.classes) if name not in look.options.secrets]
        if not asked and not look.options.secrets:
            look.unseen("it asks for no secret", "secret-shown", "secret-logged")
            return
        if asked and look.in_time and look.wanted("secret-shown", "secret-logged"):
            look.sentinels = sentinels(asked)
            look.seen("secret-shown", "secret-logged")
            self._whole(self.samples[0], quiet=True, secrets={**look.options.secrets, **look.sentinels})
            look.sentinels = {}


_ENDING = frozenset(("submit", "answer", "finish", "done", "submit_answer", "final_answer", "give_up", "end"))


class _Steps:
    """An episode as what is played beside another."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        self.transcript = episode.transcript

    def steps(self) -> list[Callable[[], object]]:
        """Open, ask, and call each tool."""
        episode = self._episode
        tools: list[Any] = []

        def list_tools() -> None:
            tools.extend(sorted(episode.tools(), key=lambda spec: spec.name in _ENDING))

        def call(place: int) -> None:
            if place < len(tools) and not episode.finished:
                episode.call(tools[place])

        most = len(episode.offering.table) + 4
        calls = [lambda place=place: call(place) for place in range(most)]
        return [episode.open, episode.prompt, list_tools, *calls, *calls]

    def close(self) -> None:
        """Tear down."""
        self._episode.close()
