"""Environments that bring their tools in every way that authors have."""

from __future__ import annotations

from typing import Any

from ors import Environment, ListToolsOutput, RunToolError, RunToolSuccess, ToolOutput, ToolSpec, tool

from .probes import Book, said

__all__ = ["Hidden", "Listed", "Overlapping", "Rewritten", "Routed", "Unlistable"]

SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "maxLength": 5}},
    "required": ["word"],
    "additionalProperties": False,
}


class Hidden(Book):
    """Tools that are not shared, and no word on which task has them: every session does."""

    @tool
    async def common(self) -> ToolOutput:
        return said("common")

    @tool(shared=False)
    async def special(self) -> ToolOutput:
        return said("special")


class Listed(Hidden):
    """The task says which of them it has; it may also repeat what all have."""

    async def list_task_tools(self) -> Any:
        names = self.task_spec.get("tools", [])
        return [ToolSpec(name=name, description="of this task", input_schema=None) for name in names]


class Rewritten(Book):
    """Changes what is listed of its tools."""

    @classmethod
    def list_tools(cls) -> ListToolsOutput:
        tools = [spec.model_copy(update={"description": "rewritten"}) for spec in super().list_tools().tools]
        return ListToolsOutput(tools=tools)

    @tool
    async def common(self) -> ToolOutput:
        """As written."""
        return said("common")


class Routed(Environment):
    """Routes calls itself; what it lists says which input is right."""

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        return [{}]

    @classmethod
    def list_tools(cls) -> ListToolsOutput:
        specs = [
            ToolSpec(name="say", description="", input_schema=SCHEMA),
            ToolSpec(name="nothing", description="", input_schema=None),
            ToolSpec(name="refuse", description="", input_schema=None),
            ToolSpec(name="output", description="", input_schema=None),
        ]
        return ListToolsOutput(tools=specs)

    def get_prompt(self) -> str:
        return "Say."

    async def _call_tool(self, name: str, input: Any) -> Any:
        if name == "refuse":
            return RunToolError(error="not today")
        if name == "output":
            return said("an output by itself")
        return RunToolSuccess(output=said(f"{name} {input.get('word', '')}".strip()))


class Unlistable(Book):
    """Cannot say which tools a task has."""

    def list_task_tools(self) -> Any:
        if self.task_spec.get("raise"):
            raise LookupError("no list")
        return [{"name": "half a specification"}]

    @tool
    async def common(self) -> ToolOutput:
        return said("common")


class Overlapping(Listed):
    """Lists a tool that all have once more for its task."""

    async def list_task_tools(self) -> Any:
        spec = {"name": "common", "description": "again", "input_schema": None}
        return ListToolsOutput.model_validate({"tools": [spec, {**spec, "name": "special"}]})
