"""Every environment over both protocols, one registry behind them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ors import Environment, ImageBlock, TextBlock, ToolError, ToolOutput, tool
from ors.client import ORS
from ors.openenv.server import create_app
from served import Served, wait_until

from .games import Adder, Move, Rows, Seen, Toolbox
from .talking import Socket, rpc

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="


class Riddles(Environment):
    """Tasks with an answer, which is nobody's business."""

    ended: Counter[str] = Counter()

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["test", "train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        return [{"split": split, "index": index} for index in range({"train": 50, "test": 2}[split])]

    def __init__(self, task_spec: Any = None, secrets: Any = None) -> None:
        super().__init__(task_spec or {}, secrets or {})
        self.answer = 1000 + self.task_spec.get("index", -1)

    def teardown(self) -> None:
        self.ended[self.task_spec.get("split", "")] += 1

    def get_prompt(self) -> list[Any]:
        return [TextBlock(text=f"Guess {self.task_spec.get('index')}."), ImageBlock(data=PICTURE, mimeType="image/png")]

    @tool
    def guess(self, number: int) -> ToolOutput:
        """Guess the number."""
        right = number == self.answer
        return ToolOutput(blocks=[TextBlock(text="right" if right else "wrong")], reward=float(right), finished=right)

    @tool
    def look(self) -> ToolOutput:
        """Look."""
        return ToolOutput(blocks=[ImageBlock(data=PICTURE, mimeType="image/png")], metadata={"far": True})

    @tool
    def fail(self, on_purpose: bool) -> ToolOutput:
        """Fail."""
        raise ToolError("meant so") if on_purpose else ValueError("not meant so")

    @tool
    def tell(self) -> ToolOutput:
        """Tell the secret."""
        return ToolOutput(blocks=[TextBlock(text=str(self.secrets.get("token", "none")))])


@pytest.fixture(scope="module")
def both() -> Iterator[Served]:
    running = Served([Riddles, Adder, Rows, Toolbox])
    yield running
    running.stop()


def call(socket: Socket, name: str, **arguments: Any) -> Any:
    return socket.ask({"type": "step", "data": {"type": "call_tool", "tool_name": name, "arguments": arguments}})


# Environments of tools over OpenEnv


def test_tools_are_listed_before_any_reset_and_nothing_is_made(both: Served) -> None:
    opened = Riddles.ended.total()
    with Socket(both.url) as socket:
        listed = socket.ask({"type": "step", "data": {"type": "list_tools"}})["data"]
        assert [tool["name"] for tool in listed["observation"]["tools"]] == ["fail", "guess", "look", "tell"]
        assert listed["observation"]["tools"][1]["input_schema"]["properties"]["number"]["type"] == "integer"
        assert (listed["reward"], listed["done"]) == (None, False)
        early = socket.error({"type": "step", "data": {"type": "call_tool", "tool_name": "look", "arguments": {}}})
        assert early["code"] == "EXECUTION_ERROR" and "reset" in early["message"]
    assert Riddles.ended.total() == opened


def test_an_episode_of_a_chosen_task(both: Served) -> None:
    with Socket(both.url) as socket:
        begun = socket.reset(split="test", index=1, episode_id="e")
        prompt = begun["observation"]["prompt"]
        assert prompt[0]["text"] == "Guess 1." and prompt[1] == {
            "type": "image",
            "data": PICTURE,
            "mimeType": "image/png",
            "detail": None,
        }
        wrong = call(socket, "guess", number=3)["data"]
        assert (wrong["reward"], wrong["done"]) == (0.0, False)
        assert wrong["observation"]["result"]["content"] == [{"type": "text", "text": "wrong"}]
        seen = call(socket, "look")["data"]
        assert seen["observation"]["result"]["content"] == [{"type": "image", "data": PICTURE, "mimeType": "image/png"}]
        assert seen["metadata"] == {"far": True} and seen["reward"] is None
        assert socket.state() == {"episode_id": "e", "step_count": 2, "split": "test", "index": 1}
        right = call(socket, "guess", number=1001)["data"]
        assert (right["reward"], right["done"]) == (1.0, True)
        assert right["observation"]["result"]["meta"] == {"reward": 1.0, "done": True}
        after = call(socket, "guess", number=1001)["data"]
        assert after["observation"]["error"]["error_type"] == "execution_error" and after["reward"] is None
        assert after["done"] is True


def test_no_answer_leaks(both: Served) -> None:
    with Socket(both.url) as socket:
        said = [socket.reset(split="train", index=7), socket.state()]
        said.append(both.client.get("/metadata").json())
        said.append(both.client.post("/riddles/task", json={"split": "train", "index": 7}).json())
        assert "1007" not in json.dumps(said)
        assert call(socket, "guess", number=1007)["data"]["reward"] == 1.0


def test_what_fails_on_purpose_and_what_does_not(both: Served) -> None:
    with Socket(both.url) as socket:
        socket.reset()
        told = call(socket, "fail", on_purpose=True)["data"]
        assert told["observation"]["error"]["error_type"] == "execution_error"
        assert "meant so" in told["observation"]["error"]["message"] and told["reward"] is None
        broke = call(socket, "fail", on_purpose=False)
        assert broke["type"] == "error" and broke["data"]["code"] == "EXECUTION_ERROR"
        assert call(socket, "nobody")["data"]["observation"]["error"]["error_type"] == "tool_not_found"
        bad = call(socket, "guess", number="many")["data"]["observation"]["error"]
        assert bad["error_type"] == "invalid_args" and "number" in bad["message"]


def test_the_same_seed_is_the_same_task_and_seeds_spread(both: Served) -> None:
    with Socket(both.url) as socket:
        tasks = []
        for seed in [*range(20), *range(20)]:
            socket.reset(seed=seed)
            state = socket.state()
            assert (state["split"], state["seed"]) == ("train", seed)
            tasks.append(state["index"])
        assert tasks[:20] == tasks[20:] and len(set(tasks)) > 10
        socket.reset(split="test", seed=3)
        assert socket.state()["split"] == "test"
        socket.reset()
        assert socket.state()["split"] == "train" and 0 <= socket.state()["index"] < 50


def test_a_task_in_full_and_secrets(both: Served) -> None:
    with Socket(both.url) as socket:
        socket.reset(task_spec={"split": "own", "index": 500}, secrets={"token": "a-secret-of-mine"})
        assert call(socket, "guess", number=1500)["data"]["reward"] == 1.0
        told = both.client.post("/reset", json={"secrets": {"token": "another-secret"}, "split": "test", "index": 0})
        assert told.status_code == 200 and "another-secret" not in told.text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"index": 2, "split": 3}, "split"),
        ({"seed": "x"}, "seed"),
        ({"task_spec": {}, "split": "test", "index": 0}, "task_spec"),
        ({"secrets": {"a": 1}}, "secrets"),
        ({"split": "tset", "index": 0}, "train"),
        ({"split": "test", "index": 2}, "2"),
    ],
)
def test_what_cannot_be_begun(both: Served, data: Any, words: str) -> None:
    with Socket(both.url) as socket:
        said = socket.error({"type": "reset", "data": data})
        assert words in json.dumps(said)
        assert said["code"] in ("VALIDATION_ERROR", "EXECUTION_ERROR")
        assert socket.reset()["done"] is False


def test_a_reset_ends_the_episode_before(both: Served) -> None:
    before = Riddles.ended["test"]
    with Socket(both.url) as socket:
        for _ in range(3):
            socket.reset(split="test", index=0)
        assert Riddles.ended["test"] == before + 2
    wait_until(lambda: Riddles.ended["test"] == before + 3)


def test_tools_by_json_rpc(both: Served) -> None:
    tools = rpc(both.client, "tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["fail", "guess", "look", "tell"] and "inputSchema" in tools[0]
    sid = both.client.post("/reset", json={"split": "test", "index": 0}).headers["X-Session-ID"]
    result = rpc(both.client, "tools/call", name="guess", arguments={"number": 1000}, session_id=sid)["result"]
    assert result["data"] == "right" and result["meta"] == {"reward": 1.0, "done": True}


def test_over_http(both: Served) -> None:
    answer = both.client.post("/reset", json={"split": "test", "index": 1})
    headers = {"X-Session-ID": answer.headers["X-Session-ID"]}
    assert answer.json()["observation"]["prompt"][0]["text"] == "Guess 1."
    action = {"type": "call_tool", "tool_name": "guess", "arguments": {"number": 1001}}
    done = both.client.post("/step", json={"action": action}, headers=headers).json()
    assert (done["reward"], done["done"]) == (1.0, True)


# Environments of steps over ORS


def test_an_environment_of_steps_by_our_client(both: Served) -> None:
    with ORS(base_url=both.url) as client:
        adder = client.environment("Adder")
        assert {split.name for split in adder.list_splits()} == {"train", "test"}
        with adder.session(split="train", index=3) as session:
            assert "total" in session.get_prompt()[0].text
            output = session.call_tool("step", {"number": 4})
            assert json.loads(output.blocks[0].text)["total"] == 4
            done = session.call_tool("step", {"do": "end"})
            assert done.finished and done.reward == 1.0
        rows = client.environment("rows")
        assert rows.num_tasks("train") == 5
        assert rows.get_task("train", 2).task_spec == {"id": "train-2", "index": 2}
        toolbox = client.environment("toolbox")
        with toolbox.session(split="train", index=0) as session:
            assert {tool.name for tool in session.list_tools()} >= {"add", "fail"}
            assert "5" in session.call_tool("add", {"a": 2, "b": 3}).blocks[0].text


# One registry


def test_what_is_made_over_one_protocol_is_limited_and_ended_over_the_other() -> None:
    running = Served([create_app(Adder, Move, Seen, max_concurrent_envs=1)])
    headers = {"X-Session-ID": "over-ors"}
    try:
        client = running.client
        made = client.post("/create", json={"split": "train", "index": 0}, headers=headers)
        assert made.status_code == 200
        with Socket(running.url) as socket:
            assert socket.error()["code"] == "CAPACITY_REACHED"
        # it is seen, and is played by steps only if it was made so
        assert client.post("/step", json={"action": {}}, headers=headers).status_code in (400, 501)
        assert client.post("/delete", headers=headers).status_code == 200
        with Socket(running.url) as socket:
            socket.reset()
            refused = client.post("/create", json={"split": "train", "index": 0}, headers={"X-Session-ID": "other"})
            assert refused.status_code == 503
            assert running.status()["sessions"] == 1
            assert client.post("/delete", headers={"X-Session-ID": socket.sid}).status_code == 200
            gone = socket.error({"type": "state"})
            assert gone["code"] == "SESSION_ERROR" and "deleted" in gone["message"]
            assert socket.closed() == 1000
        assert client.get("/state", headers={"X-Session-ID": socket.sid}).status_code == 410
    finally:
        running.stop()
