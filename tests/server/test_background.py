"""A server in a thread of this process: it answers inside its block, and leaves nothing behind."""

from __future__ import annotations

import socket
import sys
import threading
import time

import httpx
import pytest

from ors import Environment, Server, TextBlock, ToolOutput, tool
from ors.server.background import Background

TORN_DOWN: list[str] = []
STARTED = threading.Event()


class Slow(Environment):
    """Sleeps as long as it is told."""

    @classmethod
    def list_splits(cls):
        return ["train"]

    @classmethod
    def list_tasks(cls, split):
        return [{}]

    def get_prompt(self):
        return "Wait."

    def teardown(self):
        TORN_DOWN.append("one")

    @tool
    def wait(self, seconds: float) -> ToolOutput:
        """Wait."""
        print("waiting")
        STARTED.set()
        time.sleep(seconds)
        return ToolOutput(blocks=[TextBlock(text="done")])


def threads_of_servers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "ors-server"]


def test_it_answers_inside_its_block_only_and_not_to_others(capsys: pytest.CaptureFixture[str]) -> None:
    out = sys.stdout
    TORN_DOWN.clear()
    with Server([Slow], shutdown_grace=0).background() as url:
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}/list_environments").json() == ["slow"]
        session = {"X-Session-ID": "s"}
        assert httpx.post(f"{url}/create", json={"split": "train", "index": 0}, headers=session).status_code == 200
        body = {"name": "wait", "input": {"seconds": 0}}
        assert "done" in httpx.post(f"{url}/slow/call", json=body, headers=session).text
        assert threads_of_servers() == ["ors-server"]
    assert TORN_DOWN == ["one"]
    assert sys.stdout is out
    assert capsys.readouterr().out == ""
    assert threads_of_servers() == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_two_at_once_and_settings() -> None:
    with Server([Slow]).background() as one, Server([Slow], api_keys=["key"]).background() as two:
        assert one != two
        assert httpx.get(f"{one}/list_environments").status_code == 200
        assert httpx.get(f"{two}/list_environments").status_code == 401
        assert httpx.get(f"{two}/list_environments", headers={"X-API-Key": "key"}).status_code == 200


def test_what_was_added_to_the_app_is_served_too() -> None:
    server = Server([Slow])

    @server.app.get("/more")
    async def more() -> str:
        return "more"

    with server.background() as url:
        assert httpx.get(f"{url}/more").json() == "more"


def test_a_server_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server([Slow])

    async def broken() -> None:
        raise ValueError("no host today")

    monkeypatch.setattr(server.application, "start", broken)
    with pytest.raises(RuntimeError, match="the server could not start"), server.background():
        pass
    assert threads_of_servers() == []


@pytest.mark.parametrize(("seconds", "grace", "said"), [(0.3, 20, "done"), (3, 0, "draining")])
def test_a_running_call_gets_the_grace_and_no_more(seconds: float, grace: float, said: str) -> None:
    session = {"X-Session-ID": "s"}
    answers: list[str] = []
    STARTED.clear()

    def call(url: str) -> None:
        body = {"name": "wait", "input": {"seconds": seconds}}
        answers.append(httpx.post(f"{url}/slow/call", json=body, headers=session, timeout=60).text)

    with Server([Slow], shutdown_grace=grace, cut_grace=0.2, teardown_timeout=1).background() as url:
        httpx.post(f"{url}/create", json={"split": "train", "index": 0}, headers=session)
        caller = threading.Thread(target=call, args=(url,))
        caller.start()
        assert STARTED.wait(20)
    caller.join(20)
    assert len(answers) == 1
    assert said in answers[0]


def test_its_port_is_closed_also_when_it_never_started() -> None:
    server = Server([Slow])
    made = server.background()
    assert isinstance(made, Background)
    port = int(made.url.rpartition(":")[2])
    made.stop()
    with socket.create_server(("127.0.0.1", port)):
        pass
