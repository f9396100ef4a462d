"""How an episode is created: what may be said of its task, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from typing import Any

from ors.conformance.judging import NotApplicable, array, object_of, refused, require
from ors.conformance.place import Place
from ors.conformance.table import Area
from ors.conformance.visit import SID
from ors.conformance.wire import Answer, strict_json

CREATE = Area("ORS", "CREATE")
row = CREATE.row

ONE_OF = "exactly one of `task_spec` and the pair `split` and `index` is given: "


@row(
    "must", "data-types", "Episode Flow", "`POST /create` with a session's id answers an object whose `sid` is that id"
)
async def _create_001(at: Place) -> None:
    session = await at.created()
    sid = object_of(session.created, "sid")["sid"]
    require(sid == session.sid, f"`sid` is {str(sid)[:80]!r}, and {session.sid!r} was sent", session.created)


@row("must", "data-types", "CreateSession", "a task is named by `split` and `index`")
async def _create_002(at: Place) -> None:
    split = await at.split()
    await at.count()
    await _opens(at, {"env_name": at.env, "split": split, "index": 0})


@row("must", "data-types", "CreateSession", "a task is given whole as `task_spec`")
async def _create_003(at: Place) -> None:
    await _opens(at, {"env_name": at.env, "task_spec": await at.a_task()})


@row("must", "data-types", "CreateSession", "without `env_name` it is the first environment", once=True)
async def _create_004(at: Place) -> None:
    if not at.is_first:
        raise NotApplicable("the first environment is not among those that are checked")
    sid = await at.visit.new_sid()
    await at.count()
    created = await at.create(sid, {"split": await at.split(), "index": 0})
    require(object_of(created, "sid")["sid"] == sid, "`sid` is not the id that was sent", created)
    await _is_of(at, sid)


@row("must", "data-types", "CreateSession", "the episode is of the environment that `env_name` names")
async def _create_005(at: Place) -> None:
    if len(at.names) < 2:
        raise NotApplicable("the server has one environment")
    await _is_of(at, (await at.shared()).sid)


@row("must", "data-types", "CreateSession", "`secrets` may be left out")
async def _create_006(at: Place) -> None:
    _not_with_secrets(at)
    await at.count()
    await _opens(at, {"env_name": at.env, "split": await at.split(), "index": 0})


@row("must", "data-types", "CreateSession", "`secrets` may be an empty object, as in the text's own example")
async def _create_007(at: Place) -> None:
    _not_with_secrets(at)
    await at.count()
    await _opens(at, {"env_name": at.env, "split": await at.split(), "index": 0, "secrets": {}})


@row("must", "data-types", "CreateSession", "secrets in the body reach the environment", probe=True)
async def _create_008(at: Place) -> None:
    secret = uuid.uuid4().hex
    body = {"env_name": at.env, "split": await at.split(), "index": 0, "secrets": {"a_key": secret}}
    sid = await at.visit.new_sid()
    created = await at.create(sid, body)
    require(created.status == 200, f"the status is {created.status}, not 200", created)
    await _has_secret(at, sid, secret)


@row(
    "should",
    "clients",
    "X-Secrets",
    "secrets in the header `X-Secrets` reach the environment: both clients send them there",
    probe=True,
)
async def _create_009(at: Place) -> None:
    secret = uuid.uuid4().hex
    header = base64.b64encode(json.dumps({"a_key": {"value": secret}}).encode()).decode()
    sid = await at.visit.new_sid()
    body = {"env_name": at.env, "split": await at.split(), "index": 0}
    created = await at.create(sid, body, headers={"X-Secrets": header})
    require(created.status == 200, f"the status is {created.status}, not 200", created)
    await _has_secret(at, sid, secret)


@row("must", "data-types", "CreateSession", "the environment gets the task that was given whole", probe=True)
async def _create_010(at: Place) -> None:
    task = {"number": 77, "odd": ["ä", None, 2**53, {"": 0.5}]}
    sid = await at.visit.new_sid()
    await at.create(sid, {"env_name": at.env, "task_spec": task})
    call = await at.call(sid, "task", {})
    require(_json(call.text()) == task, "the environment has another task", call.answer)


@row(
    "must",
    "tasks-and-splits",
    "Task as Episode Input",
    "the environment gets the task at the place that was named",
    probe=True,
)
async def _create_011(at: Place) -> None:
    async with at.session(2) as session:
        call = await at.call(session, "task", {})
        task = _json(call.text())
        expected = {"split": session.split, "number": 2}
        require(
            isinstance(task, dict) and {key: task.get(key) for key in expected} == expected,
            "the environment has another task",
            call.answer,
        )


@row("must", "data-types", "CreateSession", ONE_OF + "both are refused")
async def _create_012(at: Place) -> None:
    await _refuses(at, {"task_spec": await at.a_task(), "split": await at.split(), "index": 0})


@row("must", "data-types", "CreateSession", ONE_OF + "neither is refused")
async def _create_013(at: Place) -> None:
    await _refuses(at, {})


@row("must", "data-types", "CreateSession", "`index` is required with `split`")
async def _create_014(at: Place) -> None:
    await _refuses(at, {"split": await at.split()})


@row("must", "data-types", "CreateSession", "`split` is required with `index`")
async def _create_015(at: Place) -> None:
    await _refuses(at, {"index": 0})


@row("should", "data-types", "CreateSession", ONE_OF + "half of the pair beside `task_spec` is refused")
async def _create_016(at: Place) -> None:
    await _refuses(at, {"task_spec": await at.a_task(), "split": await at.split()})
    await _refuses(at, {"task_spec": await at.a_task(), "index": 0})


@row("should", "tasks-and-splits", "Accessing Tasks", "a split that there is not is refused with 400")
async def _create_017(at: Place) -> None:
    await _refuses(at, {"split": "no-such-split", "index": 0}, 400)


@row("should", "task-api", "Error semantics", "an index past the end is refused with 400")
async def _create_018(at: Place) -> None:
    await _refuses(at, {"split": await at.split(), "index": await at.count()}, 400)


@row("should", "task-api", "env_name", "an `env_name` that there is not is refused with 404", once=True)
async def _create_019(at: Place) -> None:
    await _refuses(at, {"env_name": "no-such-environment", "split": await at.split(), "index": 0}, 404)


@row("should", "data-types", "Episode Flow", "`/create` without a session's id is refused")
async def _create_020(at: Place) -> None:
    refused(await at.visit.ask("POST", "/create", body={"env_name": at.env, "split": await at.split(), "index": 0}))


@row("should", "data-types", "Input Validation", "fields of another type than the text's are refused")
async def _create_021(at: Place) -> None:
    split = await at.split()
    for body in (
        {"task_spec": ["a list"]},
        {"split": split, "index": "first"},
        {"split": 7, "index": 0},
        {"split": split, "index": 0, "secrets": ["a list"]},
        {"split": split, "index": 0, "secrets": {"a_key": {"an": "object"}}},
    ):
        await _refuses(at, body)


@row("should", "data-types", "CreateSession", "what a refusal says does not repeat the secrets of the request")
async def _create_022(at: Place) -> None:
    secret = "s3cret-" + uuid.uuid4().hex
    for wrong in ({"index": "first"}, {}):
        answer = await _ask(at, {"split": await at.split(), "secrets": {"a_key": secret}, **wrong})
        require(answer.problem is None, str(answer.problem), answer)
        require(secret.encode() not in answer.body, "the answer repeats a secret", answer)


@row("must", "data-types", "Episode Invariants", "an id that has an episode is not given another one")
async def _create_023(at: Place) -> None:
    async with at.session() as session:
        before = await at.get("prompt", session.sid)
        again = await at.create(session.sid, {"env_name": at.env, "task_spec": await at.a_task()})
        refused(again)
        after = await at.get("prompt", session.sid)
        require(array(before) == array(after), "the episode was replaced", again)


@row("should", "clients", "/create", "any id that a client made is taken, not only those of `/create_session`")
async def _create_024(at: Place) -> None:
    sid = str(uuid.uuid4())
    await at.count()
    created = await at.create(sid, {"env_name": at.env, "split": await at.split(), "index": 0})
    require(object_of(created, "sid")["sid"] == sid, "`sid` is not the id that was sent", created)
    await at.visit.delete(sid)


CREATE.said(
    25,
    "should",
    "author",
    "data-types",
    "CreateSession",
    "secrets are not logged and not kept",
    "a log is not seen from outside; check_environment, rules `secret-log`, `secret-output` and `secret-prompt`",
)


def _not_with_secrets(at: Place) -> None:
    if at.visit.secrets:
        raise NotApplicable("the sessions were given secrets")


async def _ask(at: Place, body: dict[str, Any]) -> Answer:
    """A request that must be refused, on an id that is deleted at the end all the same."""
    sid = await at.once("sid for refusals", at.visit.new_sid)
    return await at.create(sid, {"env_name": at.env, **body})


async def _refuses(at: Place, body: dict[str, Any], *statuses: int) -> None:
    answer = await _ask(at, body)
    if answer.status == 200:
        # the id has an episode now, so the next refusal would not be about its own body
        sid = answer.request.headers[SID]
        await at.visit.delete(sid)
        at.visit.forget((at.env, "sid for refusals"))
    refused(answer, *statuses)


async def _opens(at: Place, body: dict[str, Any]) -> None:
    try:
        await at.created()
    except NotApplicable:
        pass
    else:
        await at.playable()
    sid = await at.visit.new_sid()
    created = await at.create(sid, body)
    found = object_of(created, "sid")["sid"]
    require(found == sid, f"`sid` is {str(found)[:80]!r}, and {sid!r} was sent", created)
    prompt = await at.get("prompt", sid)
    require(
        prompt.problem is None and prompt.status == 200,
        f"the episode has no prompt: {prompt.problem or prompt.status}",
        prompt,
    )
    await at.visit.delete(sid)


async def _is_of(at: Place, sid: str) -> None:
    """The session must be of this environment: its tools are found there, or its prompt under its name."""
    await at.playable()
    array(await at.get("prompt", sid))
    mine = {spec["name"] for spec in await at.tools()}
    if at.is_probe:
        call = await at.call(sid, "count", {})
        call.text()
        return
    answer = await at.get("task_tools", sid)
    if answer.status != 200:
        return
    found = {spec.get("name") for spec in array(answer, "tools") if isinstance(spec, dict)}
    require(not found or not mine or found & mine, "the session has the tools of another environment", answer)


async def _has_secret(at: Place, sid: str, secret: str) -> None:
    call = await at.call(sid, "secrets", {})
    digest = hashlib.sha256(secret.encode()).hexdigest()
    found = _json(call.text())
    require(
        isinstance(found, dict) and found.get("a_key") == digest, "the environment did not get the secret", call.answer
    )


def _json(text: str) -> Any:
    try:
        return strict_json(text)
    except ValueError:
        return None
