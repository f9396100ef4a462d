"""Prompts and results of calls in the providers' formats: accepted by the providers' types, images and order kept."""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ors import ImageBlock, TextBlock, ToolOutput
from ors.client.formats import (
    FORMATS,
    FormatError,
    ToolResult,
    convert_prompt,
    convert_tool_output,
    convert_tool_outputs,
)

from .provider_types import PROMPTS, RESULTS, accepted


def picture(kind: str = "PNG", colour: str = "red") -> ImageBlock:
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2), colour).save(buffer, kind)
    return ImageBlock(data=base64.b64encode(buffer.getvalue()).decode(), mimeType=f"image/{kind.lower()}")


RED, BLUE = picture(), picture(colour="blue")
BLOCKS = st.lists(
    st.text(st.characters(codec="utf-8"), max_size=6).map(lambda text: TextBlock(text=text))
    | st.sampled_from([RED, BLUE])
)


def said(value: Any) -> list[str]:
    """Every text and every image's data of a message, in order, wherever its provider keeps them."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [one for item in value for one in said(item)]
    keys = ("content", "parts", "output", "error", "text", "source", "image_url", "inlineData", "functionResponse")
    keys += ("response", "data", "url")
    return [one for key in keys if key in value for one in said(value[key])]


def expected(blocks: list[Any], format: str) -> list[str]:
    data = [one.data if isinstance(one, ImageBlock) else one.text for one in blocks]
    texts = {id(one) for one in blocks if isinstance(one, TextBlock)}
    kept = [
        text
        for one, text in zip(blocks, data, strict=True)
        if id(one) not in texts or (text.strip() if format == "anthropic" else text)
    ]
    return [
        f"data:image/png;base64,{one}" if one in (RED.data, BLUE.data) and "open" in format else one for one in kept
    ]


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None, derandomize=True)
@given(blocks=BLOCKS)
def test_a_prompt_is_all_its_text_and_images_in_order(format: str, blocks: list[Any]) -> None:
    messages = convert_prompt(blocks, format)
    for message in messages:
        accepted(PROMPTS[format], message)
        assert message["role"] == "user"
    assert said(messages) == expected(blocks, format)
    assert len(messages) == (len(said(messages)) if format == "mcp" else bool(said(messages)))


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None, derandomize=True)
@given(outputs=st.lists(BLOCKS, min_size=1, max_size=3), failed=st.booleans())
def test_results_of_calls_keep_all_text_and_images(format: str, outputs: list[list[Any]], failed: bool) -> None:
    results = [
        ToolResult(ToolOutput(blocks=blocks, reward=0.25), call_id=f"call_{i}", name="act", is_error=failed)
        for i, blocks in enumerate(outputs)
    ]
    messages = convert_tool_outputs(results, format)
    for message in messages:
        accepted(RESULTS[format], message)
    found = said(messages)
    wanted = [one for blocks in outputs for one in expected(blocks, format)]
    if format == "openrouter":
        joined = "".join(found)
        assert all(one in joined for one in wanted)
    else:
        for one in set(wanted):
            assert found.count(one) >= wanted.count(one)
    assert "0.25" not in str(messages)


def test_a_single_text_of_chat_completions_is_a_string() -> None:
    """Chat templates of open models take strings."""
    assert convert_prompt([TextBlock(text="Go."), TextBlock(text="")], "openai-chat") == [
        {"role": "user", "content": "Go."}
    ]
    assert convert_tool_output(ToolOutput(blocks=["Done."]), "openai-chat", call_id="c") == [
        {"role": "tool", "tool_call_id": "c", "content": "Done."}
    ]


@pytest.mark.parametrize("format", ["openai-chat", "openrouter"])
def test_images_of_results_follow_all_tool_messages_of_chat_completions(format: str) -> None:
    first = ToolResult(ToolOutput(blocks=["Before.", RED, "After."]), call_id="a")
    second = ToolResult(ToolOutput(blocks=[BLUE]), call_id="b")
    *tools, user = convert_tool_outputs([first, second], format)
    texts = ["Before.", "[Image 1: in the next message]", "After."]
    assert [message["tool_call_id"] for message in tools] == ["a", "b"]
    content = tools[0]["content"]
    assert (content.split("\n") if format == "openrouter" else [part["text"] for part in content]) == texts
    assert tools[1]["content"] == "[Image 2: in the next message]"
    assert user["content"] == [
        {"type": "text", "text": "Image 1, from the result of a:"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{RED.data}"}},
        {"type": "text", "text": "Image 2, from the result of b:"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BLUE.data}"}},
    ]


def test_responses_and_anthropic_take_images_in_results() -> None:
    output = ToolOutput(blocks=["Look:", RED])
    assert convert_tool_output(output, "openai", call_id="c") == [
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [
                {"type": "input_text", "text": "Look:"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{RED.data}", "detail": "auto"},
            ],
        }
    ]
    source = {"type": "base64", "media_type": "image/png", "data": RED.data}
    assert convert_tool_output(output, "anthropic", call_id="c") == [
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": [{"type": "text", "text": "Look:"}, {"type": "image", "source": source}],
                }
            ],
        }
    ]


def test_google_has_the_images_of_results_after_the_responses() -> None:
    first = ToolResult(ToolOutput(blocks=["Before.", RED]), name="look", call_id="a")
    second = ToolResult("No such door.", name="go", is_error=True)
    (content,) = convert_tool_outputs([first, second], "google")
    answered = {"id": "a", "name": "look", "response": {"output": ["Before.", "[Image 1: after this]"]}}
    assert content["parts"] == [
        {"functionResponse": answered},
        {"functionResponse": {"name": "go", "response": {"error": "No such door."}}},
        {"text": "Image 1, from the result of look:"},
        {"inlineData": {"mimeType": "image/png", "data": RED.data}},
    ]
    read = accepted(RESULTS["google"], content)
    assert read.parts[3].inline_data.data == base64.b64decode(RED.data)


def test_errors_say_that_they_are() -> None:
    (message,) = convert_tool_output("Broken.", "anthropic", call_id="c", is_error=True)
    assert message["content"][0]["is_error"] is True
    (message,) = convert_tool_output(ToolOutput(blocks=[""]), "anthropic", call_id="c", is_error=True)
    assert message["content"][0]["content"], "an error without content is refused"
    (message,) = convert_tool_output("Broken.", "mcp", is_error=True)
    assert message == {"content": [{"type": "text", "text": "Broken."}], "isError": True}


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "mcp"])
def test_a_result_that_names_no_call_is_an_error(format: str) -> None:
    with pytest.raises(FormatError, match="pass (name|call_id)="):
        convert_tool_output(ToolOutput(blocks=["x"]), format)


@pytest.mark.parametrize(
    ("format", "kind", "becomes"),
    [
        ("anthropic", "GIF", "image/gif"),
        ("anthropic", "BMP", "image/png"),
        ("openai", "TIFF", "image/png"),
        ("openai-chat", "TIFF", "image/png"),
        ("google", "GIF", "image/png"),
        ("google", "WEBP", "image/webp"),
        ("mcp", "TIFF", "image/tiff"),
    ],
)
def test_images_of_a_kind_that_is_refused_are_sent_as_png(format: str, kind: str, becomes: str) -> None:
    block = picture(kind)
    messages = convert_prompt([block], format)
    accepted(PROMPTS[format], messages[0])
    assert becomes in str(messages)
    data = said(messages)[0].rpartition(",")[2]
    assert (data == block.data) == (becomes == block.mimeType)
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        assert Image.MIME[str(image.format)] == becomes
        assert image.convert("RGB").getpixel((0, 0))[0] > 200


def test_other_names_of_a_kind_are_that_kind() -> None:
    block = RED.model_copy(update={"mimeType": "image/JPG; charset=binary"})
    assert "'media_type': 'image/jpeg'" in str(convert_prompt([block], "anthropic"))
    assert block.mimeType == "image/JPG; charset=binary"


def test_an_image_that_cannot_be_sent_is_an_error_that_says_what_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = ImageBlock(data=base64.b64encode(b"<svg/>").decode(), mimeType="image/svg+xml")
    refused = (
        "block 1 is an image of type 'image/svg\\+xml'; Anthropic takes image/gif, image/jpeg, image/png, image/webp"
    )
    with pytest.raises(FormatError, match=refused):
        convert_prompt([TextBlock(text=""), drawing], "anthropic")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(FormatError, match=r"With ors-kit\[images\]"):
        convert_prompt([drawing], "google")


def test_an_unknown_format_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(FormatError, match="Invalid format: 'claude'.*anthropic"):
        convert_prompt([], "claude")


def test_the_checks_find_what_the_types_refuse() -> None:
    """Parts that the types declare as iterables are read too, and keys that they do not have."""
    for wrong in ({"type": "text"}, {"type": "text", "text": "x", "colour": "red"}):
        with pytest.raises((ValueError, AssertionError)):
            accepted(PROMPTS["anthropic"], {"role": "user", "content": [wrong]})
        with pytest.raises((ValueError, AssertionError)):
            accepted(PROMPTS["openai-chat"], {"role": "user", "content": [wrong]})
