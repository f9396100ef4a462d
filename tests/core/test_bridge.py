"""Both bridges: a native environment of steps over ORS, and an environment of tools played by steps."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import math
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from ors import Environment, ImageBlock, TextBlock, ToolError, ToolOutput, tool
from ors.adapters.ors_environment import ORSOffering
from ors.core.bridge import bridge
from ors.core.failures import Failure
from ors.core.observation import blocks_of
from ors.core.ports import Document, Op, Opened, Principal, Start, StepOutcome, TaskQuery, TaskRef, ToolOutcome
from ors.core.secrets import Secrets, mask
from ors.hosts.local import HostOptions, LocalHost
from ors.jsontext import JSONValueError
from ors.server.application import Application
from ors.settings import Settings
from ors.tasks import Seeds

from .play import kind, until
from .step_environment import ACTION, PICTURE, Corridor, Dial, corridor

pytestmark = pytest.mark.anyio

ME = Principal()
_numbers = itertools.count(1)


class Hosted:
    """A host with sessions of the test's."""

    def __init__(self, *offerings: Any, **options: Any) -> None:
        self.host = LocalHost(offerings, HostOptions(**options))

    async def open(self, kind: Any = "tools", **start: Any) -> str:
        sid = f"s{next(_numbers)}"
        opened = await self.host.open(sid, None, Start(kind=kind, **start), ME, None)
        assert isinstance(opened, Opened), opened
        return sid

    async def ask(self, sid: str, kind: Any, **op: Any) -> Any:
        if kind == "call":
            op.setdefault("call_id", f"c{next(_numbers)}")
        outcome = await self.host.perform(sid, ME, Op(kind, **op))
        if isinstance(outcome, Document):
            return json.loads(outcome.body)
        return json.loads(outcome.body) if isinstance(outcome, ToolOutcome) else outcome

    async def step(self, sid: str, **action: Any) -> Any:
        """Call the tool `step`."""
        return await self.ask(sid, "call", name="step", input=action)

    async def query(self, *query: Any, **more: Any) -> Any:
        env = next(iter(self.host.offerings()))
        answer = await self.host.task(env, TaskQuery(*query, **more))
        return json.loads(answer.body) if isinstance(answer, Document) else answer


@asynccontextmanager
async def hosted(*offerings: Any, **options: Any) -> AsyncIterator[Hosted]:
    made = Hosted(*offerings, **options)
    try:
        yield made
    finally:
        await made.host.close()
        await until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("ors-")])


# Steps as tools


async def test_an_episode_of_steps_is_played_by_calling_its_tool() -> None:
    offering = Corridor()
    async with hosted(offering) as h:
        sid = await h.open(ref=TaskRef("train", 4), secrets=Secrets({"key": "value"}))
        prompt = [{"text": "The door is 6 steps away.", "detail": None, "type": "text"}]
        assert await h.ask(sid, "prompt") == prompt
        (spec,) = await h.ask(sid, "tools")
        assert (spec["name"], spec["input_schema"]) == ("step", ACTION)
        assert await h.step(sid, by=3) == {
            "blocks": [{"text": '{"position":3,"door":6}', "detail": None, "type": "text"}],
            "metadata": {"steps": 1},
            "reward": -0.1,
            "finished": False,
        }
        last = await h.step(sid, by=3)
        assert (last["reward"], last["finished"]) == (1.0, True)
        assert kind(await h.step(sid, by=1)) == "episode_finished"
        await h.host.end(sid, ME)
        assert offering.events == ["open", "reset 4 ['key']", "step 3", "step 3", "close deleted"]


async def test_what_does_not_fit_the_schema_never_reaches_the_environment() -> None:
    offering = Corridor()
    async with hosted(offering) as h:
        sid = await h.open(task={"length": 9})
        wrong = await h.step(sid, by=7)
        assert (wrong.kind, wrong.detail, wrong.ran) == (
            "invalid_input",
            "Tool input validation error: by: does not fit its schema (maximum)",
            "no",
        )
        assert kind(await h.step(sid)) == "invalid_input"
        assert kind(await h.step(sid, by=1, extra=2)) == "invalid_input"
        unknown = await h.ask(sid, "call", name="reset", input={})
        assert (unknown.kind, unknown.detail) == (
            "unknown_tool",
            "'reset' is not a valid tool; the only one is 'step'",
        )
        # what the environment itself refuses
        assert (await h.step(sid, by=-3)).detail == "nobody walks that far backwards"
        assert offering.events == ["open", "reset None []"]


async def test_steps_are_strictly_serial_also_those_of_several_works() -> None:
    offering = Corridor()
    async with hosted(offering) as h:
        sid = await h.open(task={"length": 10**9})
        answers = await asyncio.gather(*(h.step(sid, by=by) for by in (1, -2, 3) * 5))
        assert json.loads(answers[-1]["blocks"][0]["text"])["position"] == 10
        assert [event for event in offering.events if event != "looked back"][2:] == ["step 1", "step -2", "step 3"] * 5
        # and calls that wait when the episode ends never run
        short = await h.open(task={"length": 3})
        outcomes = await asyncio.gather(*(h.step(short, by=3) for _ in range(4)))
        assert outcomes[0]["finished"] and [kind(each) for each in outcomes[1:]] == ["episode_finished"] * 3


async def test_a_reset_that_fails_is_a_setup_that_fails() -> None:
    offering = Corridor()
    async with hosted(offering) as h:
        sid = await h.open(task={"fail": True})
        for asked in (await h.ask(sid, "prompt"), await h.step(sid, by=1)):
            assert (asked.kind, asked.detail) == ("setup_failed", "the corridor has collapsed")
        await until(lambda: offering.events[-1] == "close setup_failed")
        await h.host.end(sid, ME)
        assert offering.events == ["open", "reset None []", "close setup_failed"]


async def test_an_episode_that_is_over_as_it_begins_takes_no_steps() -> None:
    offering = Corridor()
    async with hosted(offering) as h:
        sid = await h.open(task={"length": 0})
        assert (await h.ask(sid, "prompt"))[0]["text"] == "The door is 0 steps away."
        assert kind(await h.step(sid, by=1)) == "episode_finished"
        assert "step 1" not in offering.events


async def test_a_first_observation_may_be_an_image() -> None:
    async with hosted(Corridor()) as h:
        sid = await h.open(task={"picture": True})
        assert await h.ask(sid, "prompt") == [
            {"data": PICTURE, "mimeType": "image/png", "detail": None, "type": "image"}
        ]


async def test_an_action_that_is_no_object_is_a_field_of_the_input() -> None:
    offering = Dial()
    async with hosted(offering) as h:
        (spec,) = json.loads(h.host.offerings()["dial"].tools)
        assert spec["input_schema"] == {
            "$defs": {"unused": {}},
            "type": "object",
            "properties": {"action": {"type": "integer", "description": "how far to turn"}},
            "required": ["action"],
            "additionalProperties": False,
        }
        sid = await h.open()
        turned = await h.step(sid, action=5)
        assert turned["blocks"][0]["text"] == "turned 5" and turned["reward"] == 1.0
        for wrong in ({}, {"action": "far"}, {"action": 1, "by": 2}):
            assert kind(await h.step(sid, **wrong)) == "invalid_input"
        assert offering.events[-1] == "turn 5"


@pytest.mark.parametrize(
    ("answer", "kinds", "words"),
    [
        (StepOutcome("x", math.nan), "bad_output", "'step' returned the reward nan; a reward is a finite number"),
        (StepOutcome("x", math.inf), "bad_output", "'step' returned the reward inf"),
        (StepOutcome("x", 10**400), "bad_output", "'step' returned the reward 1000"),
        (StepOutcome("x", "1"), "bad_output", "'step' returned the reward '1'"),  # type: ignore[arg-type]
        (StepOutcome({"x": math.nan}), "bad_output", "'step' returned what is no JSON"),
        (StepOutcome({"x": object()}), "bad_output", "'step' returned what is no JSON"),
        (StepOutcome("x", metadata={"x": {1}}), "bad_output", "'step' returned what is no JSON"),
        (Document(b"{}"), "bad_output", "'step' returned Document; expected an observation"),
        (Failure("tool_failed", "broke"), "tool_failed", "broke"),
    ],
)
async def test_a_step_that_is_none_is_an_error_and_never_a_reward(answer: Any, kinds: str, words: str) -> None:
    offering = Dial()
    async with hosted(offering) as h:
        sid = await h.open()
        offering.answers.append(answer)
        outcome = await h.step(sid, action=1)
        assert outcome.kind == kinds and outcome.detail.startswith(words)
        # the session goes on
        assert (await h.step(sid, action=2))["blocks"][0]["text"] == "turned 2"


async def test_metadata_of_any_kind_is_kept_in_an_object() -> None:
    offering = Dial()
    offering.answers += [StepOutcome("a", 2, metadata=[1]), StepOutcome("b", None, metadata={"x": 1}), StepOutcome("c")]
    async with hosted(offering) as h:
        sid = await h.open()
        outputs = [await h.step(sid, action=n) for n in range(3)]
        assert [output["metadata"] for output in outputs] == [{"metadata": [1]}, {"x": 1}, None]
        assert [output["reward"] for output in outputs] == [2.0, None, None]


@pytest.mark.parametrize(
    ("observation", "blocks"),
    [
        ("plain", ["plain"]),
        ("", [""]),
        ({"text": "only text"}, ["only text"]),
        ({"text": "a", "more": 1}, ['{"text":"a","more":1}']),
        ({"text": 5}, ['{"text":5}']),
        (None, ["null"]),
        ([1, "é", None], ['[1,"é",null]']),
        (True, ["true"]),
        (PICTURE, [{"data": PICTURE, "mimeType": "image/png"}]),
        ({"image": f"data:image/webp;base64,{PICTURE}"}, [{"data": PICTURE, "mimeType": "image/webp"}]),
        (
            {"text": "see", "views": [{"front": PICTURE}, f"data:image/png;base64,{PICTURE}"]},
            [
                '{"text":"see","views":[{"front":"<image 1>"},"<image 2>"]}',
                {"data": PICTURE, "mimeType": "image/png"},
                {"data": PICTURE, "mimeType": "image/png"},
            ],
        ),
        ("iVBORw0KGgo", ["iVBORw0KGgo"]),
        ("/9j/ is how a JPEG begins, but this is a sentence", ["/9j/ is how a JPEG begins, but this is a sentence"]),
        ("data:image/png;base64,§§ is no base64, whatever it says", None),
    ],
)
def test_observations_are_blocks(observation: Any, blocks: Any) -> None:
    blocks = [observation] if blocks is None else blocks
    expected = [
        {"text": block, "detail": None, "type": "text"}
        if isinstance(block, str)
        else {**block, "detail": None, "type": "image"}
        for block in blocks
    ]
    assert blocks_of(observation) == expected


def test_an_observation_without_end_is_an_error() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    with pytest.raises(JSONValueError):
        blocks_of(endless)


# Seeds


async def test_seeds_are_the_tasks_of_what_has_none() -> None:
    async with hosted(Corridor()) as h:
        assert await h.query("splits") == [{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]
        assert [await h.query("count", split) for split in ("train", "test")] == [1_000_000, 10_000]
        assert await h.query("get", "train", 17) == {"seed": 17}
        test = [task["seed"] for task in await h.query("range", "test", start=-3)]
        assert len(test) == 3 and min(test) >= 1_000_000
        assert await h.query("range", "train", start=5, stop=3) == []
        assert await h.query("range", "train", start=999_998) == [{"seed": 999_998}, {"seed": 999_999}]
        for index in (-1, 1_000_000):
            assert kind(await h.query("get", "train", index)) == "invalid_index"
        assert (await h.query("count", "exam")).detail == "Invalid split 'exam'; the splits are train, test"
        pieces = [piece async for piece in h.host.tasks("corridor", "test")]
        listed = json.loads(b"".join(pieces))  # type: ignore[arg-type]
        assert [task["seed"] for task in listed] == list(range(1 << 30, (1 << 30) + 10_000))
        assert [kind(piece) async for piece in h.host.tasks("corridor", "exam")] == ["unknown_split"]
        sid = await h.open(ref=TaskRef("test", 3))
        assert (await h.ask(sid, "prompt"))[0]["text"] == f"The door is {2 + ((1 << 30) + 3) % 5} steps away."


def test_seeds_of_the_authors_numbers() -> None:
    seeds = Seeds(train=3, test=0)
    assert [seeds.task("train", index) for index in range(3)] == [{"seed": 0}, {"seed": 1}, {"seed": 2}]
    assert (seeds.count("train"), seeds.count("test"), seeds.splits()) == (3, 0, ["train", "test"])
    for index in (-1, 3):
        with pytest.raises(IndexError, match="outside split 'train', which has 3 tasks"):
            seeds.task("train", index)
    for counts in ({"train": -1}, {"test": 2**31}):
        with pytest.raises(ValueError, match="a split has between 0 and"):
            Seeds(**counts)


async def test_a_seed_of_the_clients_own_resets_with_it() -> None:
    offering = Corridor()
    async with hosted(offering) as h:
        for task, expected in [({"seed": 3}, 3), ({"seed": True}, None), ({"seed": "3"}, None), ({}, None)]:
            await h.ask(await h.open(task=task), "prompt")
            assert offering.events[-1] == f"reset {expected} []"


# Over HTTP


@pytest.mark.parametrize("host_process", ["local", "spawned"])
async def test_an_environment_of_steps_is_served_over_http(tmp_path: Path, host_process: Any) -> None:
    make = functools.partial(corridor, str(tmp_path))
    application = Application(make, Settings.load(host_process=host_process), ())
    await application.start()
    try:
        transport = httpx.ASGITransport(application)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=30) as client:
            assert (await client.get("/list_environments")).json() == ["corridor"]
            listed = (await client.get("/corridor/tools")).json()["tools"]
            assert [(spec["name"], spec["input_schema"]) for spec in listed] == [("step", ACTION)]
            assert (await client.post("/num_tasks", json={"split": "test"})).json() == {"num_tasks": 10_000}
            task = (await client.post("/task", json={"split": "train", "index": 1})).json()["task"]
            assert task == {"seed": 1}
            client.headers["X-Session-ID"] = "walk"
            created = await client.post("/create", json={"split": "train", "index": 1})
            assert created.json() == {"sid": "walk"}
            assert (await client.get("/prompt")).json()[0]["text"] == "The door is 3 steps away."
            assert (await client.get("/task_tools")).json()["tools"] == listed
            results = []
            for by in (2, 9, 1, 1):
                answer = await client.post("/call", json={"name": "step", "input": {"by": by}})
                results.append(json.loads(answer.text.split("event: end\r\ndata: ")[1].split("\r\n")[0]))
            assert [result["ok"] for result in results] == [True, False, True, False]
            assert [results[at]["output"]["reward"] for at in (0, 2)] == [-0.1, 1.0]
            assert [results[at]["reason"] for at in (1, 3)] == ["input_validation", "episode_finished"]
            assert (await client.post("/delete")).status_code == 200
            events = (tmp_path / "events").read_text().split("\n")
            assert events == ["open", "reset 1 []", "step 2", "step 1", "close deleted", ""]
    finally:
        await application.stop()


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
