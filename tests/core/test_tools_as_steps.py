"""An environment of tools, played by steps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ors import Environment, ImageBlock, TextBlock, ToolError, ToolOutput, tool
from ors.adapters.ors_environment import ORSOffering
from ors.core.bridge import bridge
from ors.core.ports import Op, Start, StepOutcome, TaskRef
from ors.core.secrets import Secrets, mask

from .hosted import ME, Hosted, hosted
from .play import kind, until
from .step_environment import PICTURE, Corridor

pytestmark = pytest.mark.anyio


# Tools as steps


class Riddles(Environment):
    """An environment of tools, whose episodes write down what happens."""

    events: list[str] = []
    let_go = threading.Event()

    @classmethod
    def list_splits(cls) -> Any:
        return ["test", "train"]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"split": split, "answer": number} for number in range({"train": 50, "test": 2}[split])]

    def __init__(self, task_spec: Any = {}, secrets: Any = {}) -> None:
        super().__init__(task_spec)
        self.events.append(f"made {self.task_spec} {sorted(secrets)}")

    def setup(self) -> None:
        if self.task_spec.get("answer") == "none":
            raise LookupError("no riddle")

    def teardown(self) -> None:
        self.events.append("teardown")

    def get_prompt(self) -> Any:
        if self.task_spec.get("answer") == "unspeakable":
            raise LookupError("no words")
        return ["Guess.", TextBlock(text="A number.", detail={"hint": True})]

    @tool
    def guess(self, number: int) -> ToolOutput:
        """Guess."""
        right = number == self.task_spec["answer"]
        return ToolOutput(blocks=[TextBlock(text="right" if right else "wrong")], reward=float(right), finished=right)

    @tool
    def look(self) -> ToolOutput:
        """Look."""
        image = ImageBlock(data=PICTURE, mimeType="image/png")
        return ToolOutput(blocks=[TextBlock(text="a view"), image], metadata={"seen": 1})

    @tool
    def fail(self, how: str) -> ToolOutput:
        """Fail."""
        raise ToolError("on purpose") if how == "purpose" else ValueError("broke")

    @tool
    async def hang(self) -> ToolOutput:
        """Hang."""
        await asyncio.sleep(60)
        return ToolOutput(blocks=[])


@asynccontextmanager
async def riddles(**options: Any) -> AsyncIterator[tuple[Hosted, str, list[str]]]:
    Riddles.events = []
    async with hosted(ORSOffering(Riddles), **options) as h:
        yield h, await h.open(kind="steps"), Riddles.events


def guess(number: Any) -> dict[str, Any]:
    return {"type": "call_tool", "tool_name": "guess", "arguments": {"number": number}}


async def test_an_environment_of_tools_is_played_by_steps() -> None:
    async with riddles() as (h, sid, events):
        task = {"split": "train", "answer": 7}
        start = Start(ref=TaskRef("train", 7), options={"episode_id": "mine"}, secrets=Secrets({"key": "value"}))
        first = await h.ask(sid, "reset", start=start)
        assert first == StepOutcome(
            {
                "prompt": [
                    {"text": "Guess.", "detail": None, "type": "text"},
                    {"text": "A number.", "detail": {"hint": True}, "type": "text"},
                ]
            }
        )
        wrong = await h.ask(sid, "step", input=guess(5))
        assert (wrong.reward, wrong.done, wrong.metadata) == (0.0, False, None)
        assert wrong.observation == {
            "tool_name": "guess",
            "result": {
                "content": [{"type": "text", "text": "wrong"}],
                "structured_content": None,
                "meta": {"reward": 0.0, "done": False},
                "data": "wrong",
                "is_error": False,
            },
            "error": None,
        }
        look = await h.ask(sid, "step", input={"tool_name": "look"})
        assert look.metadata == {"seen": 1} and look.reward is None
        assert look.observation["result"]["content"] == [
            {"type": "text", "text": "a view"},
            {"type": "image", "data": PICTURE, "mimeType": "image/png"},
        ]
        right = await h.ask(sid, "step", input=guess(7))
        assert (right.reward, right.done) == (1.0, True)
        late = await h.ask(sid, "step", input=guess(7))
        assert (late.reward, late.done) == (None, True)
        assert late.observation["error"]["error_type"] == "execution_error"
        state = {"episode_id": "mine", "step_count": 4, "split": "train", "index": 7}
        assert await h.ask(sid, "state") == state
        await h.host.end(sid, ME)
        assert events == [f"made {task} ['key']", "teardown"]


async def test_nothing_opens_before_the_first_reset() -> None:
    async with riddles() as (h, sid, events):
        listed = await h.ask(sid, "step", input={"type": "list_tools"})
        assert [spec["name"] for spec in listed.observation["tools"]] == ["fail", "guess", "hang", "look"]
        assert set(listed.observation["tools"][0]) == {"name", "description", "input_schema"}
        assert kind(await h.ask(sid, "step", input=guess(1))) == "not_reset"
        assert await h.ask(sid, "state") == {"episode_id": None, "step_count": 0}
        assert events == []
        assert kind(await h.ask(sid, "prompt")) == "not_supported"
        assert kind(await h.ask(sid, "call", name="guess", input={"number": 1})) == "internal"


async def test_a_reset_ends_the_old_episode_and_opens_the_next() -> None:
    async with riddles() as (h, sid, events):
        for number in (1, 2):
            await h.ask(sid, "reset", start=Start(task={"answer": number}))
            assert (await h.ask(sid, "step", input=guess(number))).done
        assert (await h.ask(sid, "state"))["step_count"] == 1
        ids = set()
        for _ in range(2):
            await h.ask(sid, "reset", start=Start(task={"answer": 3}))
            ids.add((await h.ask(sid, "state"))["episode_id"])
        assert len(ids) == 2
        await h.host.end(sid, ME)
        made = [f"made {{'answer': {number}}} []" for number in (1, 2, 3, 3)]
        assert events == [word for line in made for word in (line, "teardown")]


async def test_what_an_agent_is_told_is_an_observation_and_what_broke_is_a_failure() -> None:
    async with riddles() as (h, sid, _):
        await h.ask(sid, "reset", start=Start(task={"answer": 1}))
        told = [
            (guess("many"), "invalid_args", "Tool input validation error: number: "),
            ({"tool_name": "teardown"}, "tool_not_found", "'teardown' is not a valid tool"),
            (
                {"tool_name": "fail", "arguments": {"how": "purpose"}},
                "execution_error",
                "Tool 'fail' failed: on purpose",
            ),
        ]
        for action, error_type, words in told:
            outcome = await h.ask(sid, "step", input=action)
            assert (outcome.reward, outcome.done, outcome.observation["result"]) == (None, False, None)
            assert outcome.observation["error"]["error_type"] == error_type
            assert outcome.observation["error"]["message"].startswith(words)
        broke = await h.ask(sid, "step", input={"tool_name": "fail", "arguments": {"how": "badly"}})
        assert (broke.kind, broke.detail) == ("tool_failed", "ValueError: broke")
        for action in (None, [], {}, {"type": "dance"}, {"tool_name": 5}, {"tool_name": "guess", "arguments": [1]}):
            assert kind(await h.ask(sid, "step", input=action)) == "invalid_input"
        assert (await h.ask(sid, "step", input=guess(1))).done


async def test_a_step_may_have_a_limit_of_its_own() -> None:
    async with riddles() as (h, sid, _):
        await h.ask(sid, "reset", start=Start(task={"answer": 1}))
        outcome = await h.ask(sid, "step", input={"tool_name": "hang"}, timeout_s=0.1)
        assert outcome.detail == "'hang' took longer than its limit of 0.1 s"
        assert (await h.ask(sid, "step", input=guess(1))).done


@pytest.mark.parametrize(
    ("answer", "words"), [("none", "LookupError: no riddle"), ("unspeakable", "LookupError: no words")]
)
async def test_a_reset_that_fails_has_torn_down_and_may_be_repeated(answer: str, words: str) -> None:
    async with riddles() as (h, sid, events):
        failed = await h.ask(sid, "reset", start=Start(task={"answer": answer}))
        assert failed.detail == words
        assert events[-1] == "teardown"
        assert kind(await h.ask(sid, "step", input=guess(1))) == "not_reset"
        await h.ask(sid, "reset", start=Start(task={"answer": 1}))
        assert (await h.ask(sid, "step", input=guess(1))).done
        assert kind(await h.ask(sid, "reset", start=Start(ref=TaskRef("train", 50)))) == "invalid_index"
        assert kind(await h.ask(sid, "reset", start=Start(ref=TaskRef("exam", 0)))) == "unknown_split"


async def test_a_reset_without_a_task_chooses_one_by_its_seed() -> None:
    async with riddles() as (h, sid, _):

        async def choice(**start: Any) -> Any:
            await h.ask(sid, "reset", start=Start(**start))
            state = await h.ask(sid, "state")
            return state["split"], state["index"], state.get("seed")

        by_seed = {seed: await choice(seed=seed) for seed in range(40)}
        assert {split for split, _, _ in by_seed.values()} == {"train"}, "the first split is not of the type train"
        indices = [index for _, index, _ in by_seed.values()]
        assert len(set(indices)) > 15, "seeds crowd on few tasks"
        assert indices != sorted(indices)
        assert await choice(seed=3) == by_seed[3]
        assert (await choice(seed=3, options={"split": "test"}))[0] == "test"
        assert len({(await choice())[1] for _ in range(12)}) > 1, "without a seed it is not random"
        assert kind(await h.ask(sid, "reset", start=Start(options={"split": "exam"}))) == "unknown_split"
        assert isinstance(await h.ask(sid, "reset"), StepOutcome)


async def test_secrets_of_a_reset_are_masked_until_the_session_ends() -> None:
    async with riddles() as (h, sid, _):
        for value in ("first-secret", "second-secret"):
            await h.ask(sid, "reset", start=Start(task={"answer": 1}, secrets=Secrets({"key": value})))
        assert mask("first-secret second-secret") == "[secret] [secret]"
        await h.host.end(sid, ME)
        await until(lambda: mask("first-secret second-secret") == "first-secret second-secret")


async def test_whoever_leaves_a_reset_does_not_end_it() -> None:
    async with riddles() as (h, sid, events):
        asked = h.host.perform(sid, ME, Op("reset", start=Start(ref=TaskRef("train", 1))))
        await asyncio.sleep(0)
        asked.cancel()
        await until(lambda: events)
        assert (await h.ask(sid, "step", input=guess(1))).done


def test_an_offering_of_a_kind_is_itself() -> None:
    for offering, kinds in ((Corridor(), ("steps", "tools")), (ORSOffering(Riddles), ("tools", "steps"))):
        assert bridge(offering, kinds[0]) is offering  # type: ignore[arg-type]
        assert bridge(offering, kinds[1]).spec.kind == kinds[1]  # type: ignore[arg-type]
    # a bridge over a bridge is what it was
    there_and_back = bridge(bridge(Corridor(), "tools"), "steps")
    assert there_and_back.spec.kind == "steps" and b'"call_tool"' in there_and_back.spec.action
