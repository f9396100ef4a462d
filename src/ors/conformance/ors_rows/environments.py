"""Which environments there are, and how they are named."""

from __future__ import annotations

from ors.conformance.judging import NotApplicable, array, refused, require
from ors.conformance.place import Place
from ors.conformance.table import Area
from ors.conformance.wire import Answer

ENV = Area("ORS", "ENV")
row = ENV.row

NOBODY = "no-such-environment"


async def _listed(at: Place) -> Answer:
    return await at.visit.once("environments", lambda: at.visit.ask("GET", "/list_environments"))


@row("must", "data-types", "Discovery Flow", "`GET /list_environments` answers an array of strings", once=True)
async def _env_001(at: Place) -> None:
    answer = await _listed(at)
    require(all(isinstance(name, str) for name in array(answer)), "a name is no string", answer)


@row("must", "data-types", "CreateSession", "there is a first registered environment: the list is not empty", once=True)
async def _env_002(at: Place) -> None:
    answer = await _listed(at)
    require(array(answer), "the list of environments is empty", answer)


@row(
    "should",
    "data-types",
    "CreateSession",
    "the names of environments are not empty, and each is listed once",
    once=True,
)
async def _env_003(at: Place) -> None:
    answer = await _listed(at)
    names = [str(name).lower() for name in array(answer)]
    require(all(name.strip() for name in names), "a name is empty", answer)
    require(len(set(names)) == len(names), "a name is listed twice (upper and lower case are the same)", answer)


@row(
    "should",
    "data-types",
    "CreateSession",
    "the list is the same when asked for again: the first one is the default",
    once=True,
)
async def _env_004(at: Place) -> None:
    first = await _listed(at)
    again = await at.visit.ask("GET", "/list_environments")
    require(array(first) == array(again), "the list of environments has changed", again)


@row(
    "must",
    "data-types",
    "Discovery Flow",
    "the routes of a listed environment are found under its name as it is listed",
)
async def _env_005(at: Place) -> None:
    for answer in (await at.splits_answer(), await at.tools_answer()):
        require(answer.problem is None, str(answer.problem), answer)
        require(answer.status not in (404, 405, 301, 302, 307, 308), f"the status is {answer.status}", answer)


@row(
    "should",
    "task-api",
    "env_name",
    "a name that is no environment's is answered with 404 on the task routes",
    once=True,
)
async def _env_006(at: Place) -> None:
    refused(await at.get("splits", env=NOBODY), 404)
    refused(await at.post("num_tasks", {"split": "train"}, env=NOBODY), 404)


@row("should", "task-api", "env_name", "names of environments are matched without regard to case")
async def _env_007(at: Place) -> None:
    other = at.env.upper() if at.env.upper() != at.env else at.env.lower()
    if other == at.env:
        raise NotApplicable("the name has no letters")
    answer = await at.get("splits", env=other)
    require(array(answer) == array(await at.splits_answer()), "another environment answers", answer)


ENV.said(
    8,
    "should",
    "author",
    "task-api",
    "env_name",
    "the name is given to the server explicitly, so that renaming the class breaks no trainer",
    "a server does not tell where its names come from",
)
ENV.said(
    9,
    "may",
    "author",
    "task-api",
    "env_name",
    "an environment without a name of its own has its class's",
    "a server does not tell its classes; the tests of ors.Environment.name cover ours",
)
