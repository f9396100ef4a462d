"""The wire data types: what they take, what they refuse, and how they stand on the wire."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from ors import types
from ors.types import (
    BLOCKS,
    Blocks,
    CreateSession,
    GetTask,
    GetTaskRange,
    ImageBlock,
    JSONObject,
    JSONValue,
    ListTasks,
    ListToolsOutput,
    NumTasks,
    RunToolError,
    RunToolOutput,
    RunToolSuccess,
    Split,
    TerminalToolSpec,
    TextBlock,
    ToolCall,
    ToolOutput,
    ToolSpec,
)
from ors_examples import EXAMPLES, IDS, Example

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def without_nulls(value: Any) -> Any:
    """A value without the keys that are null: the text's examples leave some of them out."""
    if isinstance(value, dict):
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    return [without_nulls(child) for child in value] if isinstance(value, list) else value


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_example_of_the_text_is_read_and_written_back(example: Example) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(getattr(types, example.type))
    for parsed in (adapter.validate_json(json.dumps(example.value)), adapter.validate_python(example.value)):
        assert without_nulls(json.loads(adapter.dump_json(parsed))) == without_nulls(example.value)


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (TextBlock(text="é"), '{"text":"é","detail":null,"type":"text"}'),
        (
            ImageBlock(data="aGk=", mimeType="image/png", detail={"width": 1}),
            '{"data":"aGk=","mimeType":"image/png","detail":{"width":1},"type":"image"}',
        ),
        (ToolSpec(name="a", description="b"), '{"name":"a","description":"b","input_schema":null}'),
        (TerminalToolSpec(name="a"), '{"name":"a","arg":null,"description":""}'),
        (ListToolsOutput(tools=[]), '{"tools":[]}'),
        (
            ToolOutput(blocks=[TextBlock(text="x")]),
            '{"blocks":[{"text":"x","detail":null,"type":"text"}],"metadata":null,"reward":null,"finished":false}',
        ),
        (
            RunToolSuccess(output=ToolOutput(blocks=[], reward=1)),
            '{"ok":true,"output":{"blocks":[],"metadata":null,"reward":1.0,"finished":false}}',
        ),
        (RunToolError(error="no"), '{"ok":false,"error":"no","reason":null}'),
        (RunToolOutput(RunToolError(error="no")), '{"ok":false,"error":"no","reason":null}'),
        (Split(name="hard", type="test"), '{"name":"hard","type":"test"}'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_keys_on_the_wire_have_the_order_and_the_nulls_that_clients_rely_on(value: BaseModel, wire: str) -> None:
    assert value.model_dump_json() == wire


@pytest.mark.parametrize(
    ("model", "value", "where"),
    [
        (TextBlock, {"text": "x", "extra": 1}, "extra"),
        (TextBlock, {"text": 1}, "text"),
        (TextBlock, {"text": "x", "type": "image"}, "type"),
        (ImageBlock, {"data": "x"}, "mimeType"),
        (ToolSpec, {"name": "x"}, "description"),
        (ToolOutput, {}, "blocks"),
        (ToolOutput, {"blocks": [], "rewrd": 1}, "rewrd"),
        (ToolOutput, {"blocks": [], "reward": "much"}, "reward"),
        (ToolOutput, {"blocks": [], "finished": "perhaps"}, "finished"),
        (RunToolSuccess, {"ok": False, "output": {"blocks": []}}, "ok"),
        (RunToolError, {"ok": True, "error": "x"}, "ok"),
        (Split, {"name": "x", "type": "hard"}, "type"),
        (ToolCall, {"name": "x"}, "input"),
        (ToolCall, {"name": "x", "input": []}, "input"),
        (ToolCall, {"name": "x", "input": None}, "input"),
        (ToolCall, {"name": "x", "input": {}, "task_id": ""}, "task_id"),
        (ToolCall, {"name": "x", "input": {}, "task_id": "i" * 257}, "task_id"),
        (ToolCall, {"name": "x", "input": {}, "id": "i"}, "id"),
        (ListTasks, {}, "split"),
        (NumTasks, {"split": None}, "split"),
        (GetTask, {"split": "x"}, "index"),
        (GetTask, {"split": "x", "index": "0"}, "index"),
        (GetTask, {"split": "x", "index": 0.5}, "index"),
        (GetTask, {"split": "x", "index": True}, "index"),
        (GetTask, {"split": "x", "index": None}, "index"),
        (GetTaskRange, {"split": "x", "start": "0"}, "start"),
        (GetTaskRange, {"split": "x", "step": 2}, "step"),
        (CreateSession, {"task_spec": {}, "secrets": {"a": 1}}, "secrets.a"),
        (CreateSession, {"task_spec": []}, "task_spec"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_refused_naming_the_key(model: type[BaseModel], value: Any, where: str) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    assert where in {".".join(map(str, error["loc"])) for error in caught.value.errors()}


def test_a_listing_may_say_more_beside_its_tools() -> None:
    listing = {"tools": [{"name": "a", "description": "", "input_schema": None}], "terminal_tool": None}
    assert ListToolsOutput.model_validate(listing).tools[0].name == "a"
    listing["tools"][0]["more"] = 1  # type: ignore[index]
    with pytest.raises(ValidationError):
        ListToolsOutput.model_validate(listing)


# Blocks


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("one", ["one"]),
        ("", [""]),
        ([], []),
        (["one", "two"], ["one", "two"]),
        (("one", {"text": "two"}), ["one", "two"]),
        ([TextBlock(text="one")], ["one"]),
        (TextBlock(text="one"), ["one"]),
        ({"text": "one", "type": "text"}, ["one"]),
        ([MappingProxyType({"text": "one"})], ["one"]),
    ],
    ids=str,
)
def test_output_takes_content_as_authors_have_it(content: Any, texts: list[str]) -> None:
    output = ToolOutput(blocks=content)
    assert [block.text for block in output.blocks if isinstance(block, TextBlock)] == texts
    assert len(output.blocks) == len(texts)


def test_output_takes_images(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    picture = PIL.Image.new("RGB", (2, 1))
    output = ToolOutput(blocks=["see:", PNG, tmp_path / "a.png", picture])
    assert [block.type for block in output.blocks] == ["text", "image", "image", "image"]
    assert ToolOutput(blocks=picture).blocks == [ImageBlock.from_image(picture)]


@pytest.mark.parametrize("content", [None, 3, [3], [None], [["nested"]], [b"no image"], {"type": "sound"}, iter("ab")])
def test_output_refuses_what_is_no_content(content: Any) -> None:
    with pytest.raises(ValidationError, match="blocks"):
        ToolOutput(blocks=content)


@pytest.mark.parametrize("value", [{"text": "x", "data": "y"}, {"type": "text"}, {"data": "x"}, {}, "text"])
def test_a_block_of_the_wire_is_exactly_one_of_the_two(value: Any) -> None:
    with pytest.raises(ValidationError):
        BLOCKS.validate_python([value])


# Rewards


@pytest.mark.parametrize(
    ("reward", "wire"), [(None, "null"), (0, "0.0"), (1, "1.0"), (True, "1.0"), (-0.5, "-0.5"), ("0.5", "0.5")]
)
def test_reward(reward: Any, wire: str) -> None:
    assert f'"reward":{wire},' in ToolOutput(blocks=[], reward=reward).model_dump_json()


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_never_silently_null(reward: float) -> None:
    wire = ToolOutput(blocks=[], reward=reward).model_dump_json()
    assert '"reward":null' not in wire
    with pytest.raises(ValueError, match="not JSON"):
        json.loads(wire, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(f"{name} is not JSON")))


# Results


def test_the_result_of_a_call_is_told_by_ok() -> None:
    success = RunToolOutput.model_validate({"ok": True, "output": {"blocks": ["hi"]}})
    assert isinstance(success.root, RunToolSuccess)
    failure = RunToolOutput.model_validate_json('{"ok": false, "error": "no", "reason": "not_found"}')
    assert failure.root == RunToolError(error="no", reason="not_found")
    for wrong in ({"error": "no"}, {"ok": True, "error": "no"}, {"ok": False, "output": {"blocks": []}}, {"ok": None}):
        with pytest.raises(ValidationError):
            RunToolOutput.model_validate(wrong)


def test_code_that_unwraps_a_result_finds_it() -> None:
    error = RunToolError(error="no")
    assert error.root is error
    assert RunToolOutput(root=error).root is error
    success = RunToolSuccess(output=ToolOutput(blocks=[]))
    assert success.root is success
    assert "root" not in success.model_dump()


# Splits


class Splits(enum.Enum):
    TRAIN = "anything"


class NamedSplits(enum.StrEnum):
    HARD = "hard"


@pytest.mark.parametrize(
    ("value", "name", "kind"),
    [
        ("train", "train", "train"),
        ("validation", "validation", "validation"),
        ("test", "test", "test"),
        ("hard", "hard", "validation"),
        ("Train", "Train", "validation"),
        (NamedSplits.HARD, "hard", "validation"),
        (Split(name="easy", type="train"), "easy", "train"),
        ({"name": "test"}, "test", "test"),
        ({"name": "easy", "type": "train"}, "easy", "train"),
        (MappingProxyType({"name": "easy", "type": "train"}), "easy", "train"),
        (SimpleNamespace(name="easy", type="train"), "easy", "train"),
        (SimpleNamespace(name="test"), "test", "test"),
        (Splits.TRAIN, "TRAIN", "validation"),
    ],
    ids=str,
)
def test_split(value: Any, name: str, kind: str) -> None:
    split = Split.of(value)
    assert (split.name, split.type) == (name, kind)
    assert json.loads(split.model_dump_json()) == {"name": name, "type": kind}


@pytest.mark.parametrize("value", [3, None, ["train"], {}, {"type": "train"}, {"name": "x", "type": "y"}, {"name": 3}])
def test_no_split(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Split.of(value)


# Requests


@pytest.mark.parametrize(("value", "index"), [(0, 0), (-1, -1), (3.0, 3), (10**30, 10**30), (1e30, int(1e30))])
def test_index(value: Any, index: int) -> None:
    parsed = GetTask(split="x", index=value)
    assert parsed.index == index
    assert type(parsed.index) is int


@pytest.mark.parametrize(
    "value",
    [
        {"task_spec": {}},
        {"task_spec": {"a": 1}, "split": None, "index": None},
        {"split": "", "index": 0},
        {"split": "train", "index": -1, "task_spec": None, "secrets": None, "env_name": None},
    ],
)
def test_session_of_one_task(value: dict[str, Any]) -> None:
    CreateSession.model_validate(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "not neither"),
        ({"task_spec": None, "split": None, "index": None}, "not neither"),
        ({"task_spec": {}, "split": "train", "index": 0}, "not both"),
        ({"task_spec": {}, "split": "train"}, "not both"),
        ({"task_spec": {}, "index": 0}, "not both"),
        ({"split": "train"}, "index is missing"),
        ({"index": 0}, "split is missing"),
    ],
)
def test_session_of_no_or_two_tasks(value: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        CreateSession.model_validate(value)


def test_secrets_are_in_no_text_of_a_session() -> None:
    body = {"task_spec": {}, "secrets": {"key": "hush-hush"}}
    assert "hush" not in repr(CreateSession.model_validate(body)) + str(CreateSession.model_validate(body))
    for wrong in ({**body, "more": "hush-hush"}, {**body, "split": "x"}, {**body, "secrets": {"key": ["hush-hush"]}}):
        with pytest.raises(ValidationError) as caught:
            CreateSession.model_validate(wrong)
        assert "hush" not in str(caught.value)


# Names that authors write into their own code


def test_json_names_are_types_that_authors_can_use() -> None:
    class Task(BaseModel):
        data: JSONObject
        more: JSONObject | None = None
        value: JSONValue = None
        blocks: Blocks = ()

    task = Task(data={"a": [1, {"b": None}]}, value=True, blocks=[TextBlock(text="x")])
    assert task.data == {"a": [1, {"b": None}]}
    assert task.value is True
    schema = Task.model_json_schema()
    assert schema["properties"]["data"]["type"] == "object"
    with pytest.raises(ValidationError):
        Task(data=[])  # type: ignore[arg-type]
    assert isinstance(task.data, Mapping)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), JSON), st.text(st.characters(exclude_categories=["Cs"])))
def test_any_json_object_passes_through_unchanged(value: dict[str, Any], name: str) -> None:
    assert ToolCall(name=name, input=value).input == value
    assert CreateSession(task_spec=value).task_spec == value
    assert ToolOutput(blocks=name, metadata=value).metadata == value
