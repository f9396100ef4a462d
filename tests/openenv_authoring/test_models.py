"""Models, messages, serialization, manifests and metadata of OpenEnv."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

import ors.openenv as openenv
from ors import AuthoringError

from .play import SHAPES


def test_every_name_is_there_and_importing_is_cheap() -> None:
    """Names of modules that are not written yet are left out."""
    for name in openenv.__all__:
        assert name in dir(openenv)
    for name in ("Action", "Environment", "MCPEnvironment", "Sequential", "read_manifest", "CompositeTransform"):
        assert getattr(openenv, name).__module__.startswith("ors.openenv.")
    with pytest.raises(AttributeError, match="Nothing"):
        openenv.Nothing
    code = (
        "import sys, ors.openenv; print([m for m in ('pydantic', 'starlette', 'yaml', 'fastmcp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_models_check_what_they_are_given() -> None:
    with pytest.raises(ValidationError):
        openenv.Action(anything=1)  # type: ignore[call-arg]
    observation = openenv.Observation()
    assert observation.model_dump() == {"done": False, "reward": None, "metadata": {}}
    for reward in (True, 3, 0.5, None):
        observation.reward = reward
        assert type(observation.reward) is type(reward)
    with pytest.raises(ValidationError):
        observation.reward = "much"  # type: ignore[assignment]
    state = openenv.State(step_count=1, board=[1])  # type: ignore[call-arg]
    assert state.model_dump() == {"episode_id": None, "step_count": 1, "board": [1]}
    with pytest.raises(ValidationError):
        state.step_count = -1
    with pytest.raises(ValidationError):
        openenv.ConcurrencyConfig(max_concurrent_envs=0)


def test_capacity_is_counted() -> None:
    status = openenv.ServerCapacityStatus.from_counts(3, 4)
    assert (status.available_slots, status.is_at_capacity) == (1, False)
    assert openenv.ServerCapacityStatus.from_counts(4, 4).is_at_capacity
    with pytest.raises(ValidationError, match="cannot exceed"):
        openenv.ServerCapacityStatus.from_counts(5, 4)


def test_messages_of_clients_are_told_apart_by_their_type() -> None:
    read = TypeAdapter(openenv.WSIncomingMessage).validate_python
    assert read({"type": "reset"}) == openenv.WSResetMessage(data={})
    assert isinstance(read({"type": "step", "data": {"a": 1}}), openenv.WSStepMessage)
    for wrong in ({"type": "step"}, {"type": "reset", "data": None}, {"type": "state", "id": 1}, {"type": "other"}):
        with pytest.raises(ValidationError):
            read(wrong)
    assert openenv.ResetRequest.model_validate({"seed": "4", "split": "x"}).model_dump(exclude_unset=True) == {
        "seed": 4,
        "split": "x",
    }
    for wrong in ({"seed": -1}, {"episode_id": "e" * 256}):
        with pytest.raises(ValidationError):
            openenv.ResetRequest.model_validate(wrong)
    schema = openenv.SchemaResponse(action={}, observation={}, state={})
    assert "reset_observation" not in schema.model_dump() and "reset_observation" not in json.loads(
        schema.model_dump_json()
    )
    assert (
        openenv.SchemaResponse(action={}, observation={}, state={}, reset_observation={}).model_dump()[
            "reset_observation"
        ]
        == {}
    )


def test_json_rpc_has_a_result_or_an_error() -> None:
    answer = openenv.JsonRpcResponse.success({"a": 1}, request_id=7)
    assert json.loads(answer.model_dump_json()) == {"jsonrpc": "2.0", "id": 7, "result": {"a": 1}}
    code = openenv.JsonRpcErrorCode.METHOD_NOT_FOUND
    assert openenv.JsonRpcResponse.error_response(code, data={"m": "x"}).model_dump() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32601, "message": "Method not found", "data": {"m": "x"}},
    }


def test_errors_say_what_they_are_about() -> None:
    assert openenv.SessionCapacityError(3, 3).max_sessions == 3
    assert "'s1'" in str(openenv.SessionNotFoundError("s1"))
    assert "no display" in str(openenv.SessionCreationError("no display"))
    assert openenv.EnvironmentFactoryError("make").factory_name == "make"
    assert str(openenv.ConcurrencyConfigurationError("Env", 4, "own words")) == "own words"
    assert "SUPPORTS_CONCURRENT_SESSIONS = True" in str(openenv.ConcurrencyConfigurationError("Env", 4))
    assert issubclass(openenv.SessionCapacityError, openenv.OpenEnvError)


def test_observations_are_written_with_reward_and_metadata_apart() -> None:
    board = SHAPES.Board(board=[[1]], reward=True, done=True, metadata={"turn": 1})
    assert list(openenv.serialize_observation(board).items()) == [
        ("observation", {"metadata": {"turn": 1}, "board": [[1]], "legal_actions": []}),
        ("reward", True),
        ("done", True),
        ("metadata", {"turn": 1}),
    ]
    assert "metadata" not in openenv.serialize_observation(openenv.Observation())


def test_actions_for_tools_are_read_where_no_model_decides() -> None:
    listing, call = {"type": "list_tools"}, {"type": "call_tool", "tool_name": "t"}
    for model in (openenv.Action, openenv.CallToolAction, openenv.ListToolsAction):
        assert isinstance(openenv.deserialize_action(listing, model), openenv.ListToolsAction)
        assert isinstance(openenv.deserialize_action(call, model), openenv.CallToolAction)
    with pytest.raises(ValidationError):
        openenv.deserialize_action(listing, SHAPES.Drop)

    class Finance(openenv.CallToolAction):
        tool_name: str = "default"

    assert type(openenv.deserialize_action({"type": "call_tool"}, Finance)) is Finance


def test_what_people_type_is_prepared() -> None:
    class Typed(openenv.Action):
        action_id: Any = None
        tokens: Any = None

    read = openenv.deserialize_action_with_preprocessing
    assert read({"action_id": "7"}, Typed).action_id == 7  # type: ignore[attr-defined]
    assert read({"action_id": "x"}, Typed).action_id == "x"  # type: ignore[attr-defined]
    tokens = read({"tokens": "[1, 2]"}, Typed).tokens  # type: ignore[attr-defined]
    assert list(tokens) == [1, 2]
    call = {"type": "call_tool", "tool_name": "t", "arguments": '{"a": 1}'}
    assert read(call, openenv.CallToolAction).arguments == {"a": 1}  # type: ignore[attr-defined]
    with pytest.raises(ValidationError):
        read({**call, "arguments": "no json"}, openenv.CallToolAction)


def test_what_is_said_of_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    load = openenv.load_environment_metadata
    assert load(SHAPES.Echo()).name == "Echo!"
    assert load(SHAPES.Columns).model_dump(exclude_none=True) == {
        "name": "Columns",
        "description": "Columns environment",
        "version": "1.0.0",
    }
    assert load(functools.partial(SHAPES.Columns, None), "columns_env").name == "columns_env"
    (tmp_path / "envs" / "columns_env").mkdir(parents=True)
    (tmp_path / "envs" / "columns_env" / "README.md").write_text("# Columns")
    assert load(SHAPES.Columns, "columns_env").readme_content == "# Columns"
    (tmp_path / "own.md").write_text("# Own")
    monkeypatch.setenv("ENV_README_PATH", str(tmp_path / "own.md"))
    assert load(lambda: None, "columns_env").readme_content == "# Own"


def test_a_manifest_is_read(tmp_path: Path) -> None:
    file = tmp_path / "openenv.yaml"
    file.write_text(
        "spec_version: 1\nname: echo_env\nversion: 1.0\nport: 9000\nvalidation:\n  types: {tags: [demo]}\nx: 1\n"
    )
    manifest = openenv.read_manifest(tmp_path)
    assert (manifest.name, manifest.version, manifest.port, manifest.app) == ("echo_env", "1.0", 9000, "server.app:app")
    assert manifest.validation == {"types": {"tags": ["demo"]}} and manifest.model_extra == {"x": 1}
    for text, words in (
        ("- a", "no mapping"),
        ("port: 1", "name"),
        ("a: [", "cannot be read"),
        ("name: x\nport: 0", "port"),
    ):
        file.write_text(text)
        with pytest.raises(AuthoringError, match=words):
            openenv.read_manifest(file)
    file.unlink()
    with pytest.raises(AuthoringError, match="there is no"):
        openenv.read_manifest(tmp_path)


def test_clients_of_language_models_have_an_address() -> None:
    class Said(openenv.LLMClient):
        async def complete(self, prompt: str, **kwargs: Any) -> str:
            return prompt

    assert Said("http://h", 8000).base_url == "http://h:8000"
    assert Said("https://h:1/v1/", None).base_url == Said("https://h:1/v1", 1).base_url == "https://h:1/v1"
    for endpoint, port, words in (
        ("h:1", 1, "http://"),
        ("http://u:p@h", 1, "credentials"),
        ("http://h:1", 2, "names the port 1"),
    ):
        with pytest.raises(ValueError, match=words):
            Said(endpoint, port).base_url
    answer = openenv.LLMResponse("yes", [openenv.ToolCall("1", "t", {"a": 1})]).to_message_dict()
    assert answer["tool_calls"][0]["function"] == {"name": "t", "arguments": '{"a": 1}'}


def test_small_things() -> None:
    assert [openenv.convert_to_ws_url(url) for url in ("http://h:1/", "https://h", "h:1", "wss://h")] == [
        "ws://h:1",
        "wss://h",
        "ws://h:1",
        "wss://h",
    ]
    assert openenv.hf_space_subdomain("Openenv/echo_env") == "openenv-echo-env"

    async def fail() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError):
        openenv.run_async_safely(fail())
