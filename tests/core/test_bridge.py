"""Environments of steps, played by tools, over ORS too."""

from __future__ import annotations

import asyncio
import functools
import json
import math
from pathlib import Path
from typing import Any

import httpx
import pytest

from ors.core.failures import Failure
from ors.core.observation import blocks_of
from ors.core.ports import Document, StepOutcome, TaskRef
from ors.core.secrets import Secrets
from ors.jsontext import JSONValueError
from ors.server.application import Application
from ors.settings import Settings
from ors.tasks import Seeds

from .hosted import ME, hosted
from .play import kind, until
from .step_environment import ACTION, PICTURE, Corridor, Dial, corridor

pytestmark = pytest.mark.anyio


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
            assert (await client.get("/list_environments")).json() == ["Corridor"]
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
