"""The splits, and how names without a type get one."""

from __future__ import annotations

from ors.conformance.judging import array, require
from ors.conformance.place import Place
from ors.conformance.table import Area

SPLIT = Area("ORS", "SPLIT")
row = SPLIT.row

TYPES = ("train", "validation", "test")


@row("must", "tasks-and-splits", "Accessing Splits", "`GET /{env_name}/splits` answers an array of objects")
async def _split_001(at: Place) -> None:
    answer = await at.splits_answer()
    require(all(isinstance(one, dict) for one in array(answer)), "a split is no object", answer)


@row("must", "data-types", "Split", "`name` of a split is a string that is not empty")
async def _split_002(at: Place) -> None:
    answer = await at.splits_answer()
    for one in array(answer):
        name = one.get("name") if isinstance(one, dict) else None
        require(isinstance(name, str) and name, "`name` of a split is no string with characters", answer)


@row("must", "data-types", "Split", "`type` of a split is train, validation or test")
async def _split_003(at: Place) -> None:
    answer = await at.splits_answer()
    for one in array(answer):
        kind = one.get("type") if isinstance(one, dict) else None
        require(kind in TYPES, f"`type` of a split is {kind!r}", answer)


@row("should", "tasks-and-splits", "What is a split?", "the name of a split names one split: none is listed twice")
async def _split_004(at: Place) -> None:
    answer = await at.splits_answer()
    names = [one.get("name") for one in array(answer) if isinstance(one, dict)]
    require(len(set(map(str, names))) == len(names), "a split is listed twice", answer)


@row(
    "must",
    "tasks-and-splits",
    "Custom Splits",
    "the bare names train, validation and test get the type of their name",
    probe=True,
)
async def _split_005(at: Place) -> None:
    for name in TYPES:
        await _has_type(at, name, name)


@row("must", "tasks-and-splits", "Custom Splits", "every other bare name gets the type validation", probe=True)
async def _split_006(at: Place) -> None:
    await _has_type(at, "holdout", "validation")


@row("must", "tasks-and-splits", "Custom Splits", "a split that says its type keeps it", probe=True)
async def _split_007(at: Place) -> None:
    await _has_type(at, "hard", "test")


@row("should", "tasks-and-splits", "Splits", "there is at least one split")
async def _split_008(at: Place) -> None:
    answer = await at.splits_answer()
    require(array(answer), "the list of splits is empty", answer)


@row("should", "task-api", "Two rules that are easy to miss", "the splits are the same when asked for again")
async def _split_009(at: Place) -> None:
    again = await at.get("splits")
    require(array(again) == array(await at.splits_answer()), "the splits have changed", again)


SPLIT.said(
    10,
    "should",
    "author",
    "tasks-and-splits",
    "Custom Splits",
    "a split of its own name has the type that fits its purpose: train to train, test to evaluate, validation to tune",
    "nobody but the author knows what a split is for",
)
SPLIT.said(
    11,
    "may",
    "author",
    "tasks-and-splits",
    "Custom Splits",
    "an environment has splits beyond train, validation and test",
    "it is allowed, not asked for; ORS-SPLIT-006 and ORS-SPLIT-007 show that a server takes them",
)


async def _has_type(at: Place, name: str, kind: str) -> None:
    answer = await at.splits_answer()
    found = {one.get("name"): one.get("type") for one in array(answer) if isinstance(one, dict)}
    require(name in found, f"the split {name!r} of the probe is missing", answer)
    require(found[name] == kind, f"the split {name!r} has the type {found[name]!r}, not {kind!r}", answer)
