"""The formats that existing code asks for by name mean what they mean in the client of `ors-sdk`."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from ors.client.formats import convert_tool_response

from .peers import clean_environ, peer_python

FORMATS = ("openai", "anthropic", "google", "openrouter")
SUBMIT = {
    "type": "object",
    "title": "SubmitParams",
    "description": "What to submit.",
    "properties": {
        "answer": {"type": "string", "title": "Answer", "description": "The answer.", "minLength": 1},
        "tries": {"type": "array", "title": "Tries", "items": {"type": "integer", "title": "Try"}},
        "mode": {"type": "string", "enum": ["fast", "slow"]},
    },
    "required": ["answer"],
}
LOSSY = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "description": "At most."},
        "key": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    },
}
ANSWER = {
    "tools": [
        {"name": "submit", "description": "Submit it.", "input_schema": SUBMIT},
        {"name": "look", "description": "Look.", "input_schema": None},
        {"name": "find", "description": "Find.", "input_schema": LOSSY},
    ]
}
PROGRAM = """
import json, sys
from ors.client import convert_tool_response
answer = json.load(sys.stdin)
print(json.dumps({name: convert_tool_response(answer, format=name) for name in %r}))
"""


@pytest.fixture(scope="module")
def theirs() -> dict[str, list[dict[str, Any]]]:
    command = [peer_python("ors-sdk"), "-c", PROGRAM % (FORMATS,)]
    done = subprocess.run(
        command, input=json.dumps(ANSWER), capture_output=True, text=True, env=clean_environ(), timeout=60
    )
    assert done.returncode == 0, done.stderr
    made: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return made


def ours(format: str) -> list[dict[str, Any]]:
    made = convert_tool_response(ANSWER, format)
    if format == "openai":
        assert [tool.pop("strict") for tool in made] == [False] * 3
    if format == "openrouter":  # theirs stand beside the function, where no model sees them
        for tool in made:
            tool["parameters"] = tool["function"].pop("parameters")
    return made


@pytest.mark.parametrize("format", FORMATS)
def test_plain_tools_are_converted_as_there(format: str, theirs: dict[str, list[dict[str, Any]]]) -> None:
    mine, other = ours(format)[:2], theirs[format][:2]
    if format == "openrouter":
        assert other[1].pop("parameters") is None
        assert mine[1].pop("parameters") == {"type": "object", "properties": {}}
    items = mine[0].get("parameters", mine[0].get("input_schema"))["properties"]["tries"]["items"]
    assert items.pop("title", "Try") == "Try", "a title that its author wrote is kept"
    assert mine == other


@pytest.mark.parametrize("format", FORMATS)
def test_7_1_10_what_is_lost_there_is_kept_here(format: str, theirs: dict[str, list[dict[str, Any]]]) -> None:
    def parameters(tools: list[dict[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = tools[2].get("parameters") or tools[2]["input_schema"]
        return found["properties"]

    lost, kept = parameters(theirs[format]), parameters(ours(format))
    assert "title" not in lost
    assert kept["title"] == {"type": "string"}
    if format == "google":
        assert lost["key"] == {}
        assert lost["limit"] == {"description": "At most."}
        assert kept["key"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
        assert kept["limit"] == {"type": "integer", "nullable": True, "default": None, "description": "At most."}
    else:
        assert (kept["key"], kept["limit"]) == (LOSSY["properties"]["key"], LOSSY["properties"]["limit"])  # type: ignore[index]
    if format == "openrouter":
        assert "parameters" not in theirs[format][2]["function"]
        assert "parameters" in convert_tool_response(ANSWER, format)[2]["function"]
