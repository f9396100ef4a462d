"""What environments and splits there are."""

from __future__ import annotations

from typing import Any

from ors.conformance.judging import NotApplicable, answered, array, object_of, refused, require
from ors.conformance.openenv_place import OpenEnvPlace as Place
from ors.conformance.table import Area
from ors.conformance.wire import Answer

ENV = Area("OPENENV", "ENV")
SPLIT = Area("OPENENV", "SPLIT")

ROUTES: tuple[tuple[str, Any], ...] = (
    ("tasks", {"split": "train"}),
    ("num_tasks", {"split": "train"}),
    ("task", {"split": "train", "index": 0}),
    ("task_range", {"split": "train"}),
)


@ENV.row("must", "task-api", "HTTP Routes", "`GET /list_environments` answers an array of names", once=True)
async def _env_001(at: Place) -> None:
    answer = await at.visit.ask("GET", "/list_environments")
    names = array(answer)
    require(names and all(isinstance(name, str) and name for name in names), "it names no environment", answer)


@ENV.row("must", "task-api", "`env_name`", "the name of an environment in a path is matched whatever its case")
async def _env_002(at: Place) -> None:
    if at.env.upper() == at.env.lower():
        raise NotApplicable("the name has no letters")
    for env in (at.env.upper(), at.env.lower()):
        answer = await at.get("splits", env=env)
        require(answer.status != 404, f"{env!r} is unknown", answer)
        require(answer.status == (await at.splits_answer()).status, "it is answered in another way", answer)


@ENV.row("must", "task-api", "Error semantics", "another name than an environment's answers 404", once=True)
async def _env_003(at: Place) -> None:
    refused(await at.get("splits", env="no-such-environment"), 404)
    for route, body in ROUTES:
        refused(await at.post(route, body, env="no-such-environment"), 404)


@ENV.row("must", "task-api", "HTTP Routes", "the routes stand in `/openapi.json` under the tag `Task API`", once=True)
async def _env_004(at: Place) -> None:
    answer = await at.visit.ask("GET", "/openapi.json")
    paths = object_of(answer, "paths")["paths"]
    require(isinstance(paths, dict), "`paths` is no object", answer)
    tagged = {
        path.rpartition("/")[2]
        for path, methods in paths.items()
        if isinstance(methods, dict)
        for method in methods.values()
        if isinstance(method, dict) and "Task API" in (method.get("tags") or ())
    }
    missing = {"list_environments", "splits", *(route for route, _ in ROUTES)} - tagged
    require(not missing, f"without the tag, or not there: {', '.join(sorted(missing))}", answer)


@SPLIT.row("must", "task-api", "HTTP Routes", "`GET /{env_name}/splits` answers an array of splits")
async def _split_001(at: Place) -> None:
    array(await _splits(at))


@SPLIT.row("must", "task-api", "Split normalization", "a split is an object with its `name`")
async def _split_002(at: Place) -> None:
    answer = await _splits(at)
    for split in array(answer):
        named = isinstance(split, dict) and isinstance(split.get("name"), str) and split["name"]
        require(named, f"a split without a name: {str(split)[:100]}", answer)


@SPLIT.row(
    "must",
    "task-api",
    "Split normalization",
    "a split that the environment names `train`, `validation` or `test` has that as its type",
    probe=True,
)
async def _split_003(at: Place) -> None:
    answer = await _splits(at)
    types = _types(answer)
    for name in ("train", "validation", "test"):
        require(types.get(name) == name, f"the type of {name!r} is {types.get(name)!r}", answer)


@SPLIT.row(
    "must", "task-api", "Split normalization", "a split with any other name has the type `validation`", probe=True
)
async def _split_004(at: Place) -> None:
    answer = await _splits(at)
    found = _types(answer).get("own")
    require(found == "validation", f"the type of 'own' is {found!r}", answer)


@SPLIT.row("must", "task-api", "Split normalization", "a split given as an object is passed through", probe=True)
async def _split_005(at: Place) -> None:
    answer = await _splits(at)
    require({"name": "named", "type": "train"} in array(answer), "the split 'named' has changed", answer)


@SPLIT.row("must", "task-api", "Two rules that are easy to miss", "asking for the splits twice gives the same")
async def _split_006(at: Place) -> None:
    first = await _splits(at)
    again = await at.get("splits")
    require(array(again) == array(first), "the second answer is another", again)


async def _splits(at: Place) -> Answer:
    answer = await at.splits_answer()
    if answer.status == 501:
        raise NotApplicable("the environment has no Task API")
    return answered(answer)


def _types(answer: Answer) -> dict[str, Any]:
    return {str(split.get("name")): split.get("type") for split in array(answer) if isinstance(split, dict)}
