"""OpenEnv's JSON-RPC: over `POST /mcp`, over the socket `/mcp`, and inside `/ws`."""

from __future__ import annotations

from typing import Any

import pytest

from served import Served, wait_until

from .games import LIVES, gate
from .talking import Socket, rpc

TOOLBOX = "/toolbox/mcp"


def error_of(answer: Any) -> tuple[int, str]:
    assert set(answer) == {"jsonrpc", "id", "error"}
    return answer["error"]["code"], answer["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'[{"jsonrpc": "2.0", "method": "tools/list", "id": 1}]', b"3"])
def test_what_is_no_request_at_all(served: Served, body: bytes) -> None:
    answer = served.client.post("/mcp", content=body)
    assert answer.status_code == 200
    assert answer.json()["id"] is None
    assert error_of(answer.json())[0] == -32700


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"jsonrpc": "1.0", "method": "tools/list", "id": 1},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "method": "tools/list", "params": [1], "id": 1},
        {"jsonrpc": "2.0", "method": "tools/list", "id": 1, "extra": 1},
    ],
)
def test_a_request_that_is_none(served: Served, body: Any) -> None:
    answer = served.client.post("/mcp", json=body).json()
    assert answer["jsonrpc"] == "2.0"
    assert error_of(answer)[0] == -32600


@pytest.mark.parametrize("id", [1, "a", None])
def test_the_id_comes_back_also_where_there_is_none(served: Served, id: Any) -> None:
    assert rpc(served.client, "nothing", id=id)["id"] == id
    answer = served.client.post("/mcp", json={"jsonrpc": "2.0", "method": "nothing"}).json()
    assert answer["id"] is None and error_of(answer) == (-32601, "Method not found: nothing")


def test_tools_are_listed_as_mcp_lists_them(served: Served) -> None:
    tools = rpc(served.client, "tools/list", path=TOOLBOX)["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["add", "fail"]
    assert list(tools[0]) == [
        *("name", "title", "description", "inputSchema", "outputSchema", "icons", "annotations", "meta", "execution")
    ]
    assert tools[0]["description"] == "Add two numbers."
    assert tools[0]["inputSchema"]["required"] == ["a"]


def test_a_tool_is_called_with_what_it_returns_in_every_form(served: Served) -> None:
    answer = rpc(served.client, "tools/call", path=TOOLBOX, name="add", arguments={"a": 2, "b": 3})
    result = answer["result"]
    [block] = result["content"]
    assert (block["type"], block["text"]) == ("text", "5")
    assert result["data"] == 5 and result["is_error"] is False
    assert result["structured_content"] == {"result": 5}
    # ruling 25: it was a step, and what came of it is told
    assert result["meta"]["reward"] == 0.5 and result["meta"]["done"] is False


@pytest.mark.parametrize(
    ("params", "code", "words"),
    [
        ({}, -32602, "Missing 'name'"),
        ({"name": ""}, -32602, "Missing 'name'"),
        ({"name": "add", "arguments": [1]}, -32602, "arguments"),
        ({"name": "nobody"}, -32603, "nobody"),
        ({"name": "fail"}, -32603, "it fell over"),
        ({"name": "add", "arguments": {"a": "many"}}, -32603, ""),
        ({"name": "add", "session_id": "nobody"}, -32602, "Unknown session_id: nobody"),
    ],
)
def test_calls_that_fail(served: Served, params: Any, code: int, words: str) -> None:
    told = error_of(rpc(served.client, "tools/call", path=TOOLBOX, **params))
    assert told[0] == code and words in told[1]


def test_an_environment_without_tools_says_so(served: Served) -> None:
    for method, params in (("tools/list", {}), ("tools/call", {"name": "add"})):
        assert error_of(rpc(served.client, method, **params)) == (-32603, "Environment does not support MCP")


def test_a_session_keeps_its_state_and_its_calls_count(served: Served) -> None:
    client = served.client
    sid = rpc(client, "openenv/session/create", path=TOOLBOX)["result"]["session_id"]
    for number in range(1, 4):
        result = rpc(client, "tools/call", path=TOOLBOX, name="add", arguments={"a": 1}, session_id=sid)["result"]
        assert result["meta"]["reward"] == number * 0.5
    with Socket(served.url, f"/toolbox/ws?session_id={sid}") as socket:
        assert socket.state()["step_count"] == 3
    assert rpc(client, "tools/list", path=TOOLBOX, session_id=sid)["result"]["tools"][0]["name"] == "add"
    closed = rpc(client, "openenv/session/close", path=TOOLBOX, session_id=sid)["result"]
    assert closed == {"session_id": sid, "closed": True}
    again = error_of(rpc(client, "openenv/session/close", path=TOOLBOX, session_id=sid))
    assert again == (-32602, f"Unknown session_id: {sid}")
    assert error_of(rpc(client, "openenv/session/close", path=TOOLBOX))[0] == -32602


def test_without_a_session_each_call_has_an_environment_of_its_own(served: Served) -> None:
    before = served.status()["sessions"]
    for _ in range(3):
        result = rpc(served.client, "tools/call", path=TOOLBOX, name="add", arguments={"a": 1})["result"]
        assert result["meta"]["reward"] == 0.5
    wait_until(lambda: served.status()["sessions"] == before)


def test_a_session_that_cannot_be_made_leaves_nothing_behind(served: Served) -> None:
    from .games import Broken

    running = Served([Broken])
    try:
        answer = rpc(running.client, "openenv/session/create")
        assert error_of(answer)[0] == -32000
        assert answer["error"]["data"]["factory_name"] == "Broken"
        wait_until(lambda: running.status()["sessions"] == 0)
    finally:
        running.stop()


def test_over_a_socket_of_its_own(served: Served) -> None:
    with Socket(served.url, TOOLBOX) as socket:
        assert [tool["name"] for tool in socket.call("tools/list")["result"]["tools"]] == ["add", "fail"]
        for number in range(1, 4):
            answer = socket.call("tools/call", id=number, name="add", arguments={"a": number})
            assert answer["id"] == number and answer["result"]["data"] == number + 1
            assert answer["result"]["meta"]["reward"] == number * 0.5
        own = socket.call("openenv/session/create")["result"]["session_id"]
        assert own == socket.sid
        assert error_of(socket.call("openenv/session/close", session_id=own))[0] == -32600
        assert error_of(socket.ask("{"))[0] == -32700
        assert error_of(socket.call("nothing"))[0] == -32601
    wait_until(lambda: own not in served.application.openenv.sessions.attached)  # type: ignore[union-attr]


def test_answers_over_it_come_in_order_and_a_slow_one_is_waited_for(served: Served) -> None:
    with Socket(served.url, TOOLBOX) as socket:
        for number in range(50):
            socket.say({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
        assert [socket.hear()["id"] for _ in range(50)] == list(range(50))


def test_inside_an_episode_over_ws(served: Served) -> None:
    with Socket(served.url, "/toolbox/ws") as socket:
        assert socket.ask({"type": "reset"})["data"]["metadata"] == {"ready": True}
        request = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}}
        answer = socket.ask({"type": "mcp", "data": request})
        assert answer["type"] == "mcp" and answer["data"]["id"] == 9
        assert answer["data"]["result"]["data"] == 2
        assert socket.state()["step_count"] == 1
        assert socket.ask({"type": "mcp", "data": {}})["data"]["error"]["code"] == -32600


def test_tools_by_steps_over_ws(served: Served) -> None:
    with Socket(served.url, "/toolbox/ws") as socket:
        # before a reset, as those that play tasks of others ask
        listed = socket.ask({"type": "step", "data": {"type": "list_tools"}})["data"]["observation"]
        assert [tool["name"] for tool in listed["tools"]] == ["add", "fail"]
        assert set(listed["tools"][0]) == {"name", "description", "input_schema"}
        socket.ask({"type": "reset"})
        call = {"type": "call_tool", "tool_name": "add", "arguments": {"a": 4}}
        data = socket.ask({"type": "step", "data": call})["data"]
        assert data["observation"]["result"]["data"] == 5 and data["observation"]["error"] is None
        assert data["reward"] == 0.5
        failed = socket.ask({"type": "step", "data": {**call, "tool_name": "nobody"}})["data"]
        assert failed["observation"]["error"]["error_type"] == "tool_not_found"
        bad = socket.ask({"type": "step", "data": {**call, "arguments": {}}})["data"]
        assert bad["observation"]["error"]["error_type"] == "invalid_args"
        other = socket.ask({"type": "step", "data": {"metadata": {}}})["data"]
        assert other["observation"]["metadata"] == {"did": "nothing"}


def test_two_that_act_in_one_session_take_turns(served: Served) -> None:
    entered, go = gate("turns")
    sid = rpc(served.client, "openenv/session/create")["result"]["session_id"]
    closed = LIVES["closed"]
    with Socket(served.url, f"/ws?session_id={sid}") as socket:
        socket.say({"type": "step", "data": {"do": "wait", "number": 1, "value": "turns"}})
        assert entered.wait(10)
        go.set()
        other = served.client.post("/step", json={"action": {"number": 1}}, headers={"X-Session-ID": sid})
        assert other.json()["observation"]["total"] == 2
        assert socket.hear()["data"]["observation"]["total"] == 1
    rpc(served.client, "openenv/session/close", session_id=sid)
    wait_until(lambda: LIVES["closed"] > closed)
