"""What tools and prompts return, as JSON of exactly one shape, or what is wrong with it."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ors import ImageBlock, TextBlock, ToolOutput
from ors.adapters.ors_output import prompt_document, tool_outcome
from ors.core.failures import Failure
from ors.core.ports import Document, ToolOutcome

TEXT = {"text": "a", "detail": None, "type": "text"}


def output(**fields: Any) -> ToolOutput:
    """An output whose fields are set as authors can: without any check."""
    made = ToolOutput(blocks=[TextBlock(text="a")])
    for name, value in fields.items():
        object.__setattr__(made, name, value)
        made.__dict__[name] = value
    return made


def test_every_field_stands_on_the_wire_in_order() -> None:
    outcome = tool_outcome("t", ToolOutput(blocks=[TextBlock(text="a")]))
    assert outcome == ToolOutcome(
        b'{"blocks":[{"text":"a","detail":null,"type":"text"}],"metadata":null,"reward":null,"finished":false}'
    )


def test_everything_that_a_block_can_hold() -> None:
    image = ImageBlock.from_image(Image.new("RGB", (2, 2)), detail={"n": [1, {"x": None}]})
    given = ToolOutput(
        blocks=[TextBlock(text='tab\t"quote" \\ é 漢 😀 \u2028 \0', detail={"big": 10**400}), image],
        metadata={"nested": {"list": [1, 2.5, True, None, "x"]}, "": {}},
        reward=0.1,
        finished=True,
    )
    outcome = tool_outcome("t", given)
    assert isinstance(outcome, ToolOutcome)
    assert json.loads(outcome.body) == given.model_dump()
    assert (outcome.reward, outcome.finished) == (0.1, True)


@pytest.mark.parametrize("blocks", [[], ()])
def test_blocks_are_never_empty(blocks: Any) -> None:
    outcome = tool_outcome("t", output(blocks=blocks))
    assert isinstance(outcome, ToolOutcome)
    assert json.loads(outcome.body)["blocks"] == [{"text": "", "detail": None, "type": "text"}]


@pytest.mark.parametrize("reward", [0, 1, -2.5, True, 1e308, np.float64(0.5), 2**60])
def test_rewards_are_numbers(reward: Any) -> None:
    outcome = tool_outcome("t", output(reward=reward))
    assert isinstance(outcome, ToolOutcome)
    assert outcome.reward == reward and type(outcome.reward) is float
    assert json.loads(outcome.body)["reward"] == reward


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, "1", [1], 10**400, object(), np.float64("nan")])
def test_a_reward_that_is_no_finite_number_is_an_error_that_names_the_tool(reward: Any) -> None:
    outcome = tool_outcome("grade", output(reward=reward))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.ran) == ("bad_output", "yes")
    assert outcome.detail.startswith("'grade' returned ")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"metadata": {"a": [1, math.nan]}}, "metadata.a[1]"),
        ({"metadata": {"a": {"b": math.inf}}}, "metadata.a.b"),
        ({"metadata": {"a": np.float64("nan")}}, "metadata"),
        ({"metadata": {"a": object()}}, "metadata"),
        ({"metadata": [1]}, "metadata"),
        ({"metadata": {"a": "\ud800"}}, "metadata"),
        ({"metadata": {"a": 10**5000}}, "metadata.a"),
        ({"blocks": [TextBlock(text="a", detail={"x": math.nan})]}, "blocks[0].detail"),
        ({"blocks": [TextBlock(text="a"), TextBlock(text="\udfff")]}, "blocks[1].text"),
        ({"blocks": ["text"]}, "blocks[0]"),
        ({"blocks": "text"}, "blocks"),
        ({"blocks": None}, "blocks"),
        ({"finished": 1}, "finished"),
        ({"finished": None}, "finished"),
    ],
)
def test_what_cannot_be_json_is_named_with_its_place(fields: dict[str, Any], place: str) -> None:
    outcome = tool_outcome("grade", output(**fields))
    assert isinstance(outcome, Failure)
    assert outcome.kind == "bad_output"
    assert outcome.detail.startswith("'grade' returned ") and place in outcome.detail


def test_metadata_without_end_is_an_error() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"deeper": deep}
    for metadata in (endless, deep):
        outcome = tool_outcome("grade", output(metadata=metadata))
        assert isinstance(outcome, Failure) and outcome.kind == "bad_output"
    while deep:  # taken apart link by link: the interpreter would do it by recursion
        deep = deep["deeper"]


def test_metadata_of_pythons_own_kinds_is_written() -> None:
    outcome = tool_outcome("t", output(metadata={"amount": Decimal("1.50"), "pair": (1, 2), 3: "three"}))
    assert isinstance(outcome, ToolOutcome)
    assert json.loads(outcome.body)["metadata"] == {"amount": "1.50", "pair": [1, 2], "3": "three"}


@pytest.mark.parametrize("value", [None, "text", {"blocks": []}, [TextBlock(text="a")], ToolOutput, 5])
def test_what_is_no_output_is_named(value: Any) -> None:
    outcome = tool_outcome("go", value)
    assert isinstance(outcome, Failure)
    assert outcome.detail == f"'go' returned {type(value).__name__}; expected ToolOutput"


@pytest.mark.parametrize(
    ("prompt", "blocks"),
    [
        ("a", [TEXT]),
        (["a", TextBlock(text="b", detail={"x": 1})], [TEXT, {"text": "b", "detail": {"x": 1}, "type": "text"}]),
        (TextBlock(text="a"), [TEXT]),
        ({"text": "a"}, [TEXT]),
        ([{"text": "a", "type": "text"}], [TEXT]),
        ([], [{"text": "", "detail": None, "type": "text"}]),
        ("", [{"text": "", "detail": None, "type": "text"}]),
    ],
)
def test_prompts_are_blocks(prompt: Any, blocks: Any) -> None:
    document = prompt_document("Env.get_prompt", prompt)
    assert isinstance(document, Document)
    assert json.loads(document.body) == blocks


def test_a_prompt_may_have_images() -> None:
    document = prompt_document("Env.get_prompt", ["Look:", Image.new("L", (1, 1))])
    assert isinstance(document, Document)
    assert [block["type"] for block in json.loads(document.body)] == ["text", "image"]


@pytest.mark.parametrize(
    "prompt",
    [None, 5, [None], [{"type": "sound"}], "\ud800", [TextBlock(text="a", detail={"x": math.nan})], b"x"],
)
def test_a_prompt_that_is_none_is_an_error_that_names_it(prompt: Any) -> None:
    failed = prompt_document("Env.get_prompt", prompt)
    assert isinstance(failed, Failure)
    assert (failed.kind, failed.ran) == ("prompt_failed", "yes")
    assert failed.detail.startswith("Env.get_prompt returned no prompt: ")
