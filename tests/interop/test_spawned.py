"""The same clients when the environments run in a process of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from .processes import Driver, ServedEnvironments, log_file
from .test_episodes import TestSecrets, check_episodes, said
from .test_fidelity import MOSTLY_BLANK, changed
from .test_queries import ODD, check_tools, specs, value
from .texts import image_of, sha256


@pytest.fixture(scope="module")
def spawned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedEnvironments]:
    log = log_file(tmp_path_factory.mktemp("spawned"), "server")
    with ServedEnvironments(log, settings={"host_process": "spawned"}) as served:
        yield served


def test_queries(driver: Driver, spawned: ServedEnvironments) -> None:
    report = driver.play(spawned.url, "queries", name="probe", variant=None, split="odd", index=1)

    assert value(report["list_splits"]) == ["train", "test", "odd"]
    assert specs(value(report["list_tasks"])) == ODD
    assert specs(value(report["get_task_range -2 None"])) == ODD[-2:]
    check_tools(report)


def test_episodes(driver: Driver, spawned: ServedEnvironments) -> None:
    report = driver.play(spawned.url, "episodes", name="probe", variant=None, count=64, at_once=32)

    check_episodes(report, 64)
    assert report["peak"] == 32


def test_texts_and_images(driver: Driver, spawned: ServedEnvironments) -> None:
    actions = [["text", {"kind": kind, "size": size, "seed": seed}] for kind, size, seed in MOSTLY_BLANK]
    (outcomes,) = driver.play(spawned.url, "calls", name="probe", variant=None, sessions=[[{}, *actions]])
    (image,) = driver.play(spawned.url, "images", sizes=[20_000_000])

    assert changed([value(outcome) for outcome in outcomes], MOSTLY_BLANK) == []
    assert image == {"sha256": sha256(image_of(20_000_000, 20_000_000)), "size": 20_000_000, "mime": "image/bmp"}


def test_secrets(driver: Driver, spawned: ServedEnvironments) -> None:
    assert TestSecrets.GIVEN.items() <= driver.play(spawned.url, "secrets", given=TestSecrets.GIVEN, split=None).items()


def test_faults(driver: Driver, spawned: ServedEnvironments) -> None:
    sessions = [
        [{}, ["nope", {}], ["refuse", {"message": "not now"}], ["hint"]],
        [{}, ["explode", {"message": "kaputt\nin two lines"}]],
        [{"setup_error": "no more machines"}, ["hint"]],
    ]
    played = driver.play(spawned.url, "calls", name="probe", variant=None, sessions=sessions)
    (unknown, refused, hint), (broken,), (failed,) = played

    assert "'nope' is not a valid tool" in unknown["text"]
    assert "Tool 'refuse' failed: not now" in refused["text"]
    assert said(hint) == "Add the two numbers."
    assert broken["error"] == ("RuntimeError" if driver.peer == "ors-sdk" else "ToolFailed")
    assert "kaputt\nin two lines" in broken["text"]
    assert "no more machines" in failed["text"]


@pytest.mark.parametrize("leave", ["error", "exit during setup"])
def test_leaving_tears_down(driver: Driver, spawned: ServedEnvironments, leave: str) -> None:
    lived = driver.play(spawned.url, "lifetime", token=uuid.uuid4().hex, leave=leave)["lived"]

    assert [event for event in lived if event != "ready"] == ["made", "gone"]
