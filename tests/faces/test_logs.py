"""Logs of a server process: one line for each episode, in two formats, and no secret anywhere."""

from __future__ import annotations

import base64
import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from ors.tasks import task_key
from served import wait_until

from .serving import TESTS, Process
from .wire import Episode, error_of, failure_of


@pytest.fixture
def settings(host_process: str) -> dict[str, Any]:
    return {"host_process": {"local": "local", "remote": "spawned"}[host_process]}


def free_port() -> int:
    """For a server that does not log where it listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def records(served: Process) -> list[dict[str, Any]]:
    return [json.loads(line) for line in served.log.splitlines()]


def test_one_line_for_each_episode_as_json(tmp_path: Path, settings: dict[str, Any]) -> None:
    with Process(tmp_path, log_format="json", **settings) as served:
        before = len(records(served))
        first = Episode(served.client, split="hard", index=1).opened()
        assert first.prompt().status_code == 200
        for _ in range(3):
            first.text("count")
        first.call("fail", {"message": "x"})
        for _ in range(20):
            first.ping()
        first.call("finish", {"reward": 0.5})
        first.delete()
        second = Episode(served.client, {}, env="slow").opened()
        second.delete()
        wait_until(lambda: served.log.count("episode ended") == 2)
        ended = records(served)[before:]
        assert [line["message"] for line in ended] == ["episode ended"] * 2
        assert list(ended[0])[:4] == ["time", "level", "logger", "message"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", ended[0]["time"])
        assert ended[0]["seconds"] >= 0
        expected = {"level": "info", "session": first.sid, "env": "probe", "task": "hard[1]", "why": "deleted"}
        expected |= {"calls": 5, "failed": 1, "reward": 3.5, "finished": True}
        assert expected.items() <= ended[0].items()
        expected = {"session": second.sid, "env": "slow", "task": None, "why": "deleted"}
        expected |= {"calls": 0, "failed": 0, "reward": None, "finished": False}
        assert expected.items() <= ended[1].items()
        # the hash of {} in canonical form, and that of a task that is given by its place
        assert ended[1]["task_key"] == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        assert ended[0]["task_key"] == task_key({"number": 1})
        assert served.stop() == 0
        assert [line["level"] for line in records(served) if line["level"] != "info"] == []
    assert served.output_file.read_text() == ""


def test_one_line_for_each_episode_for_people(tmp_path: Path, settings: dict[str, Any]) -> None:
    with Process(tmp_path, **settings) as served:
        episode = Episode(served.client, split="train", index=0).opened()
        episode.text("count")
        assert served.stop() == 0
        lines = served.log.splitlines()
        (line,) = (line for line in lines if "episode ended" in line)
        assert re.match(
            r"\d\d:\d\d:\d\d INFO {4}episode ended session=\S+ env=probe task=train\[0\] why=shutdown ", line
        )
        assert line.endswith(" calls=1 failed=0 reward=1.0 finished=False")


def test_what_goes_wrong_is_logged_with_its_traceback(tmp_path: Path, settings: dict[str, Any]) -> None:
    with Process(tmp_path, log_format="json", log_level="warning", port=free_port(), **settings) as served:
        Episode(served.client, {"fail": "setup"}).opened().prompt()
        made = Episode(served.client, {"fail": "teardown"}).opened()
        made.prompt()
        made.delete()
        wait_until(lambda: len(served.log.splitlines()) >= 2)
        lines = records(served)
        assert {line["level"] for line in lines} == {"warning"}
        assert "setup fails" in lines[0]["message"] and "teardown fails" in lines[1]["message"]


def test_what_tools_print_is_kept_with_the_call_and_bounded(tmp_path: Path, settings: dict[str, Any]) -> None:
    with Process(tmp_path, log_format="json", log_level="debug", **settings) as served:
        assert Episode(served.client, {}, env="odd").opened().text("shout", megabytes=3) == "done"
        wait_until(lambda: "printed" in served.log)
        (line,) = (line for line in records(served) if "printed" in line["message"])
        assert line["message"].startswith("shout printed: xxx")
        assert len(line["message"]) < 70_000 and "more characters" in line["message"]
        served.stop()
    assert served.output_file.read_text() == ""


SECRETS = {
    "plain": "hunter2-hunter2",
    "quoted": "pass\"word\\with'quotes",
    "accents": "pässwört-ключ",
    "lines": "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----",
}


@pytest.mark.parametrize(("log_format", "errors"), [("json", "exception"), ("console", "stacktrace")])
def test_no_secret_in_any_line_or_answer(
    tmp_path: Path, settings: dict[str, Any], log_format: str, errors: str
) -> None:
    keys = ["the-api-key-itself"]
    answers: list[httpx.Response] = []
    with Process(
        tmp_path, log_format=log_format, log_level="debug", return_errors=errors, api_keys=keys, **settings
    ) as served:
        served.client.event_hooks["response"].append(answers.append)
        header = base64.b64encode(json.dumps({"plain": {"value": SECRETS["plain"]}}).encode()).decode()
        episode = Episode(served.client, {"number": 1}, secrets=SECRETS).opened(**{"X-Secrets": header})
        for name in SECRETS:
            words, _ = error_of(episode.call("betray", {"name": name}))
            assert "[secret]" in words
            error_of(episode.call("leak", {"name": name}))
        failing = Episode(served.client, {"fail_with_secret": "quoted"}, secrets=SECRETS).opened()
        assert failure_of(failing.prompt()) == (500, "setup_failed")
        failing.delete()
        # requests that are refused, with secrets in all the wrong places
        for body in (
            {"secrets": SECRETS},
            {"task_spec": {}, "secrets": {"deep": SECRETS}},
            {"task_spec": {}, "secrets": SECRETS, "extra": SECRETS},
            {"task_spec": {}, "secrets": list(SECRETS.values())},
        ):
            served.client.post("/create", json=body, headers={"X-Session-ID": "x", "X-Secrets": header})
        cut = json.dumps({"task_spec": {}, "secrets": SECRETS})[:-3]
        served.client.post("/create", content=cut, headers={"X-Session-ID": "x"})
        served.client.post("/create", json={"task_spec": {}}, headers={"X-Session-ID": "x", "X-Secrets": header[:-5]})
        served.client.get("/tools", headers={"X-API-Key": "a-wrong-key"})
        episode.delete()
        assert served.stop() == 0
        # a line that is written late is masked all the same: it was formatted while the secret was known
        assert served.log.count("leak printed") == len(SECRETS)
        assert len(answers) >= 15
        told = "".join(answer.text for answer in answers)
        for text in (served.log, served.output_file.read_text(), told):
            for value in (*SECRETS.values(), *keys, "a-wrong-key", header):
                for form in (
                    value,
                    json.dumps(value)[1:-1],
                    json.dumps(value, ensure_ascii=False)[1:-1],
                    repr(value)[1:-1],
                ):
                    assert form not in text
            assert "MIIEvQIBADANBg" not in text
    if log_format == "json":
        records(served)


def test_nobody_who_reads_stalls_nobody_who_asks(tmp_path: Path) -> None:
    """The pipe that takes the log is full, and nobody empties it: the server goes on, and ends when it is told to."""
    settings = json.dumps({"log_level": "debug", "log_format": "json"})
    command = [sys.executable, "-m", "faces.run_alone", settings, "0"]
    with subprocess.Popen(command, cwd=TESTS, stderr=subprocess.PIPE, text=True, bufsize=1) as process:
        try:
            assert process.stderr is not None
            url = next(found[0] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
            with httpx.Client(base_url=url, timeout=30) as client:
                episode = Episode(client, {}, env="odd").opened()
                for _ in range(5):  # each logs more than a pipe holds
                    assert episode.text("shout", megabytes=1) == "done"
                assert client.get("/health").json() == {"status": "ok"}
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
