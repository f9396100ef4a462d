"""What the parts of a check share: the class that is looked at, where its code runs, and what was found so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ors.testing.blocking import Blocked
from ors.testing.complaints import LEVELS, Complaint
from ors.testing.places import Own, Spot
from ors.testing.report import CheckReport
from ors.testing.rules import RULES, Kind
from ors.testing.secrecy import leaked
from ors.testing.stage import Hung, Outcome, Stage

__all__ = ["Inspection", "Options", "words_of"]

_SHOWN = 300


class Options:
    """What a check was asked for."""

    def __init__(
        self,
        *,
        splits: tuple[str, ...] | None,
        tasks: int,
        skip: set[str],
        secrets: Mapping[str, str],
        inputs: Mapping[str, Mapping[str, Any]],
        timeout_s: float,
        budget_s: float,
        action_cls: Any = None,
        observation_cls: Any = None,
    ) -> None:
        self.splits = splits
        self.tasks = tasks
        self.skip = skip
        self.secrets = dict(secrets)
        self.inputs = inputs
        self.timeout_s = timeout_s
        self.budget_s = budget_s
        self.models = {"action_cls": action_cls, "observation_cls": observation_cls}


class Inspection:
    """One class under check. Rules are `seen` when something could have broken them."""

    def __init__(self, cls: type, kind: Kind, own: Own, stage: Stage, options: Options) -> None:
        self.cls = cls
        self.kind = kind
        self.own = own
        self.stage = stage
        self.options = options
        self.sentinels: dict[str, str] = {}
        self.otherwise = "nothing here shows it"
        self._found: dict[tuple[str, str, int | None], Complaint] = {}
        self._seen: set[str] = set()
        self._unseen: dict[str, str] = {}
        self._read = 0
        self._began = time.monotonic()

    @property
    def name(self) -> str:
        """The class's name."""
        return self.cls.__name__

    @property
    def in_time(self) -> bool:
        """Whether there is time for more than what must be looked at."""
        return time.monotonic() - self._began < self.options.budget_s

    def wanted(self, *ids: str) -> bool:
        """Whether any of these rules is to be checked."""
        return any(id not in self.options.skip for id in ids)

    def seen(self, *ids: str) -> None:
        """These rules were checked; without a complaint they hold."""
        self._seen.update(ids)

    def unseen(self, why: str, *ids: str) -> None:
        """These rules could not be checked."""
        for id in ids:
            self._unseen.setdefault(id, why)

    def broken(self, id: str) -> bool:
        """Whether there is a complaint of a rule."""
        return any(rule == id for rule, _, _ in self._found)

    def complain(
        self, id: str, message: str, method: str, *, spot: Spot | None = None, mend: str = "", owner: type | None = None
    ) -> None:
        """Note a breach. `method` is the name of a method of the class, whose place is told unless there is a better.

        One complaint of a rule about a place is enough.
        """
        self._seen.add(id)
        if id in self.options.skip:
            return
        rule, cls = RULES[id], owner or self.cls
        file, line = spot if spot is not None and spot[0] else self._place(cls, method)
        shown = method if "." in method else f"{cls.__name__}.{method}" if method else cls.__name__
        key = (id, shown, line)
        if key not in self._found:
            said = self.hide(message)
            self._found[key] = Complaint(id, rule.level, said, shown, file, line, mend or rule.mend)

    def _place(self, cls: type, method: str) -> Spot:
        name = method.rpartition(".")[2]
        return self.own.of_method(cls, name) if name else self.own.of_class(cls)

    def hide(self, text: str) -> str:
        """A text without the secrets of this check, in one piece and not too long."""
        for value in (*self.options.secrets.values(), *self.sentinels.values()):
            if len(value) >= 4:
                text = text.replace(value, "[secret]")
        return text if len(text) <= 4 * _SHOWN else f"{text[: 4 * _SHOWN]}…"

    def run(
        self, method: str, function: Callable[[], Any], *, watch: bool = False, owner: type | None = None
    ) -> Outcome:
        """Run author code under the name of a method; what blocks is complained of. Raises Hung."""
        was_hung = self.stage.is_hung
        try:
            outcome = self.stage.call(f"{(owner or self.cls).__name__}.{method}", function, watch=watch)
        except Hung as exc:
            if not was_hung:
                self.complain("episode-hangs", str(exc), method, spot=exc.spot, owner=owner)
            raise
        self.seen("episode-hangs")
        if outcome.is_async:
            self.seen(*(("async-blocking", "async-files") if watch else ("async-busy",)))
        for blocked in outcome.blocked:
            self._blocks(blocked, method)
        self._check_printed(method, owner)
        return outcome

    def _blocks(self, blocked: Blocked, method: str) -> None:
        id = {"waits": "async-blocking", "file": "async-files", "busy": "async-busy"}[blocked.kind]
        if blocked.kind == "busy" and any(
            complaint.rule.startswith("async-") and (complaint.file, complaint.line) == blocked.spot
            for complaint in self._found.values()
        ):
            return  # it is known what it waits for there
        where = "" if blocked.function.rpartition(".")[2] == method else f" in {blocked.function}"
        verb = "opens files" if blocked.kind == "file" else blocked.what
        if blocked.kind == "file":
            message = f"{verb} ({blocked.what}){where}, in `async def` code: all sessions wait meanwhile"
        elif blocked.kind == "busy":
            message = f"{verb}{where} without an await: all sessions wait meanwhile"
        else:
            message = f"calls {verb}{where}, which blocks the event loop: all sessions wait meanwhile"
        self.complain(id, message, method, spot=blocked.spot)

    def _check_printed(self, method: str, owner: type | None) -> None:
        if not (self.options.secrets or self.sentinels):
            return
        self.seen("secret-logged")
        said = self.stage.printed.getvalue()
        if name := leaked(said[self._read :], self.options.secrets, self.sentinels):
            self.complain("secret-logged", f"the secret '{name}' is printed or logged", method, owner=owner)
        self._read = len(said)

    def check_shown(
        self, text: str, what: str, method: str, *, spot: Spot | None = None, owner: type | None = None
    ) -> None:
        """Complain of a secret in a text that leaves the environment."""
        if self.options.secrets or self.sentinels:
            self.seen("secret-shown")
            if name := leaked(text, self.options.secrets, self.sentinels):
                self.complain("secret-shown", f"the secret '{name}' is in {what}", method, spot=spot, owner=owner)

    def report(self) -> CheckReport:
        """What was found, errors first."""
        complaints = sorted(self._found.values(), key=lambda found: LEVELS.index(found.level))
        broken = {complaint.rule for complaint in complaints}
        skip = self.options.skip
        passed = tuple(id for id in RULES if id in self._seen and id not in broken and id not in skip)
        unseen = {}
        for id, rule in RULES.items():
            if self.kind in rule.kinds and id not in skip and id not in self._seen:
                unseen[id] = self._unseen.get(id, self.otherwise)
        seconds = time.monotonic() - self._began
        return CheckReport(self.name, tuple(complaints), passed, unseen, seconds)


def words_of(error: BaseException) -> str:
    """An exception in one line, shortened."""
    try:
        said = " ".join(str(error).split())
    except Exception:  # the author's own __str__
        said = ""
    kind = type(error).__name__
    return f"{kind}: {said[:_SHOWN]}" if said else kind
