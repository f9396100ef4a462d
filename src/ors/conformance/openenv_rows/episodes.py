"""Episodes over HTTP, and what a server says of its environment."""

from __future__ import annotations

from typing import Any

from ors.conformance.judging import NotApplicable, answered, object_of, refused, require
from ors.conformance.openenv_place import OpenEnvPlace as Place
from ors.conformance.table import Area
from ors.conformance.wire import Answer

ABOUT = Area("OPENENV", "ABOUT")
EPISODE = Area("OPENENV", "EPISODE")

DOC = "openenv"


@ABOUT.row("must", DOC, "GET /health", "`/health` answers 200 and a `status`", once=True)
async def _about_001(at: Place) -> None:
    answer = await at.visit.ask("GET", "/health")
    status = object_of(answer, "status")["status"]
    require(status in ("healthy", "ok"), f"the status is {str(status)[:60]!r}", answer)


@ABOUT.row("must", DOC, "GET /schema", "`/schema` answers the JSON Schemas `action`, `observation` and `state`")
async def _about_002(at: Place) -> None:
    schemas = await at.schema()
    for name in ("action", "observation", "state"):
        schema = schemas[name]
        whole = isinstance(schema, dict) and bool(schema)
        require(whole, f"`{name}` is {str(schema)[:80]}", await at.schema_answer())


@ABOUT.row("must", DOC, "GET /metadata", "`/metadata` answers the environment's `name` and `description`")
async def _about_003(at: Place) -> None:
    answer = await at.root_get("metadata")
    told = object_of(answer, "name", "description")
    require(isinstance(told["name"], str) and told["name"], "the name is no text", answer)


@EPISODE.row("must", DOC, "POST /reset", "`/reset` answers `observation`, an object, `reward` and `done`")
async def _episode_001(at: Place) -> None:
    answer = await at.root_post("reset", {})
    _observed(answer)


@EPISODE.row("must", DOC, "POST /reset", "`/reset` needs no body")
async def _episode_002(at: Place) -> None:
    _observed(await at.root_post("reset"))


@EPISODE.row("must", "task-api", "Selecting a task in `reset()`", "`/reset` takes keys that it does not know")
async def _episode_003(at: Place) -> None:
    _observed(await at.root_post("reset", {"no_such_key": 1}))


@EPISODE.row(
    "must",
    "task-api",
    "Selecting a task in `reset()`",
    "the keys of `/reset` that the environment's `reset` declares arrive there",
    probe=True,
)
async def _episode_004(at: Place) -> None:
    answer = await at.root_post("reset", {"split": "test", "index": 12, "seed": 3})
    told = _observed(answer)["observation"].get("told")
    require(told == {"split": "test", "index": 12, "seed": 3}, f"the environment was told {str(told)[:100]}", answer)


@EPISODE.row("must", DOC, "POST /reset", "a `seed` that is no number, or below 0, is refused with 422")
async def _episode_005(at: Place) -> None:
    for seed in ("none", -1):
        refused(await at.root_post("reset", {"seed": seed}), 422)


@EPISODE.row("must", DOC, "POST /reset", "a body that is no JSON object is refused with 422")
async def _episode_006(at: Place) -> None:
    refused(await at.root_post("reset", raw=b"{nonsense"), 422)
    refused(await at.root_post("reset", [1]), 422)


@EPISODE.row("must", DOC, "POST /step", "`/step` answers what the step came to", probe=True)
async def _episode_007(at: Place) -> None:
    action = {"text": "ä\u2028🙂", "reward": 0.5, "done": True}
    answer = await at.root_post("step", {"action": action})
    came = _observed(answer)
    require(came["observation"].get("text") == action["text"], "the text came back as another", answer)
    require(came["reward"] == 0.5 and came["done"] is True, "reward or done are others", answer)


@EPISODE.row("must", DOC, "POST /step", "`action` is required, and one that the schema refuses is 422", probe=True)
async def _episode_008(at: Place) -> None:
    refused(await at.root_post("step", {}), 422)
    refused(await at.root_post("step", {"action": {"text": "a", "wait_s": "long"}}), 422)
    refused(await at.root_post("step", {"action": {"text": "a", "other": 1}}), 422)


@EPISODE.row("must", DOC, "POST /step", "a step that fails is no 2xx", probe=True)
async def _episode_009(at: Place) -> None:
    answer = await at.root_post("step", {"action": {"text": "a", "fail": True}})
    require(answer.problem is None and answer.status >= 400, f"the status is {answer.status}", answer)


@EPISODE.row("must", DOC, "GET /state", "`/state` answers `episode_id` and `step_count`")
async def _episode_010(at: Place) -> None:
    answer = await at.root_get("state")
    if answer.problem is None and answer.status >= 500:
        raise NotApplicable("the environment has no state before its first reset")
    object_of(answer, "episode_id", "step_count")


@EPISODE.row("must", DOC, "Observations", "`metadata` stands in the observation too, and `reward` and `done` do not")
async def _episode_011(at: Place) -> None:
    answer = await at.root_post("reset", {})
    observation = _observed(answer)["observation"]
    require("metadata" in observation, "`metadata` is missing", answer)
    require(not {"reward", "done"} & observation.keys(), "`reward` or `done` stand in it", answer)


@EPISODE.row(
    "should",
    DOC,
    "HTTP episodes",
    "a step with the `X-Session-ID` that `/reset` answered is a step of that episode",
    probe=True,
)
async def _episode_012(at: Place) -> None:
    begun = answered(await at.root_post("reset", {}))
    sid = begun.header("x-session-id")
    require(sid, "`/reset` answers no X-Session-ID: each request is an episode of its own", begun)
    for count in (1, 2):
        answer = await at.root_post("step", {"action": {"text": "a"}}, headers={"X-Session-ID": sid})
        found = _observed(answer)["observation"].get("count")
        require(found == count, f"the step is number {found}, not {count}", answer)


def _observed(answer: Answer) -> dict[str, Any]:
    came = object_of(answer, "observation", "reward", "done")
    require(isinstance(came["observation"], dict), "`observation` is no object", answer)
    require(isinstance(came["done"], bool), "`done` is no boolean", answer)
    number = isinstance(came["reward"], (int, float)) or came["reward"] is None
    require(number, "`reward` is neither a number nor null", answer)
    return came
