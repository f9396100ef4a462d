"""What holds for every answer of a server."""

from __future__ import annotations

from ors.conformance.judging import Failed, NotApplicable, array, object_of, refused, require
from ors.conformance.place import Place
from ors.conformance.table import Area
from ors.conformance.wire import Answer, BadJSON

SERVER = Area("ORS", "SERVER")
row = SERVER.row


@row("should", "clients", "/health", '`GET /health` answers `{"status": "ok"}`', once=True)
async def _server_001(at: Place) -> None:
    answer = await at.visit.ask("GET", "/health")
    require(object_of(answer, "status")["status"] == "ok", "`status` is not ok", answer)


@row("should", "http", "8.3 Content-Type", "JSON is sent as application/json")
async def _server_002(at: Place) -> None:
    for answer in await _looked_at(at):
        if answer.status == 200:
            require(
                answer.media_type == "application/json",
                f"the content type is {answer.header('content-type')!r}",
                answer,
            )


@row(
    "must",
    "json",
    "JSON values",
    "what is sent as JSON is JSON that every reader reads alike: no NaN, no key twice, UTF-8",
)
async def _server_003(at: Place) -> None:
    await _looked_at(at)
    for answer in at.visit.all_answers:
        if (
            answer.problem is None
            and not answer.cut
            and answer.media_type == "application/json"
            and answer.status < 300
        ):
            try:
                answer.json()
            except BadJSON as exc:
                raise Failed(f"the body is not JSON: {exc}", answer) from None


@row("should", "data-types", "Input Validation", "a body that is no JSON is refused, and is no error of the server")
async def _server_004(at: Place) -> None:
    for raw in (b"{", b"\xff\xfe", b'"a string"'):
        refused(await at.post("num_tasks", raw=raw))


@row("should", "clients", "Errors", "a refusal is a JSON object whose `detail` says why")
async def _server_005(at: Place) -> None:
    answer = await at.post("num_tasks", {"split": "no-such-split"})
    if answer.problem is None and answer.status < 400:
        raise NotApplicable("a split that there is not is not refused")
    require(answer.problem is None, str(answer.problem), answer)
    try:
        body = answer.json()
    except BadJSON as exc:
        raise Failed(f"the body is not JSON: {exc}", answer) from None
    require(isinstance(body, dict) and body.get("detail"), "there is no `detail`", answer)


@row(
    "should",
    "clients",
    "Bare paths",
    "the first environment also answers without its name, so that the client of openreward finds it",
    once=True,
)
async def _server_006(at: Place) -> None:
    if not at.is_first:
        raise NotApplicable("the first environment is not among those that are checked")
    answer = await at.visit.ask("GET", "/splits")
    if 300 <= answer.status < 400:
        answer = await at.visit.ask(
            "GET",
            answer.header("location").partition(at.visit.speaker.address.authority)[2] or answer.header("location"),
        )
    require(array(answer) == array(await at.splits_answer()), "another environment answers", answer)


@row("must", "http", "15.6 Server Error 5xx", "a request that is right is not answered with an error of the server")
async def _server_007(at: Place) -> None:
    for answer in await _looked_at(at):
        require(answer.problem is None, str(answer.problem), answer)
        require(answer.status < 500 or answer.status == 501, f"the status is {answer.status}", answer)


SERVER.said(
    8,
    "should",
    "author",
    "data-types",
    "Type Validation",
    "inputs and outputs are checked in every implementation",
    "the rows ORS-CALL-007 to ORS-CALL-011, ORS-CREATE-021 and ORS-OUTPUT-001 to ORS-OUTPUT-005 check each kind",
)


@row(
    "should",
    "tasks-and-splits",
    "Accessing Tasks",
    "a body without Content-Type is read as JSON, as in the text's examples",
)
async def _server_009(at: Place) -> None:
    body = {"split": await at.split()}
    answer = await at.post("num_tasks", body, headers={"Content-Type": ""})
    if answer.status == 501:
        raise NotApplicable("the environment does not count its tasks")
    require("num_tasks" in object_of(answer), "the key 'num_tasks' is missing", answer)


async def _looked_at(at: Place) -> list[Answer]:
    """The answers that every run has."""
    answers = [await at.splits_answer(), await at.tools_answer(), await at.count_answer(), await at.task_answer(0)]
    try:
        answers += [(await at.created()).created, await at.prompt_answer()]
    except NotApplicable:
        pass
    return answers
