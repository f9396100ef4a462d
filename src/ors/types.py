"""The data types of the Open Reward Standard, as they stand on the wire (spec: Data Types).

Field order and explicit nulls are what existing clients rely on. Models refuse unknown keys. They are built on first
use, so importing them costs little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

__all__ = [
    "Block",
    "Blocks",
    "CreateSession",
    "GetTask",
    "GetTaskRange",
    "ImageBlock",
    "JSONObject",
    "JSONValue",
    "ListTasks",
    "ListToolsOutput",
    "NumTasks",
    "RunToolError",
    "RunToolOutput",
    "RunToolSuccess",
    "Split",
    "Task",
    "TerminalToolSpec",
    "TextBlock",
    "ToolCall",
    "ToolOutput",
    "ToolSpec",
]

JSONValue: TypeAlias = "str | int | float | bool | None | Mapping[str, JSONValue] | Sequence[JSONValue]"
"""Any JSON value."""
JSONObject: TypeAlias = "Mapping[str, JSONValue]"
"""A JSON object."""
Task: TypeAlias = "Mapping[str, JSONValue]"
"""A task is a JSON object whose structure is the environment's own (spec: Task)."""


class _Wire(BaseModel):
    # "constants" keeps a NaN visible in the output, where encoding finds and refuses it, instead of turning it into null
    model_config = ConfigDict(extra="forbid", defer_build=True, ser_json_inf_nan="constants")


class TextBlock(_Wire):
    """Text content: `{"text": str, "detail": object | null, "type": "text"}`."""

    text: str
    detail: dict[str, Any] | None = None
    type: Literal["text"] = "text"


class ImageBlock(_Wire):
    """Image content, base64: `{"data": str, "mimeType": str, "detail": object | null, "type": "image"}`."""

    data: str
    mimeType: str  # noqa: N815 - the wire name
    detail: dict[str, Any] | None = None
    type: Literal["image"] = "image"

    @classmethod
    def from_image(cls, image: Any, *, detail: dict[str, Any] | None = None) -> ImageBlock:
        """Make a block from a `PIL.Image`, encoded bytes, or a path. Raises ValueError for what is no image."""
        from ors.images import encode_image

        data, mime = encode_image(image)
        return cls(data=data, mimeType=mime, detail=detail)


Block: TypeAlias = TextBlock | ImageBlock
"""One piece of content."""
Blocks: TypeAlias = Sequence[TextBlock | ImageBlock]
"""Prompts and tool outputs are sequences of blocks (spec: Blocks)."""


class ToolSpec(_Wire):
    """A tool as it is listed: `{"name", "description", "input_schema": object | null}` (null: no parameters)."""

    name: str
    description: str
    input_schema: dict[str, Any] | None = None


class TerminalToolSpec(_Wire):
    """The tool that a harness feeds with the agent's final message: `{"name", "arg": str | null, "description"}`."""

    name: str
    arg: str | None = None
    description: str = ""


class ListToolsOutput(_Wire):
    """The tools of an environment or a task: `{"tools": [ToolSpec]}`."""

    tools: list[ToolSpec]


class ToolOutput(_Wire):
    """What a tool returns: blocks, metadata, a reward that is a number or none, and whether the episode is over.

    `blocks` also takes text, images (`PIL.Image`, bytes, a path) and lists of these. A NaN or infinite reward is
    refused when the output is sent.
    """

    blocks: list[TextBlock | ImageBlock]
    metadata: dict[str, Any] | None = None
    reward: float | None = None
    finished: bool = False

    @field_validator("blocks", mode="wrap")
    @classmethod
    def _accept_content(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            from ors.images import to_blocks

            return handler(to_blocks(value))


class RunToolSuccess(_Wire):
    """A call that ran: `{"ok": true, "output": ToolOutput}`."""

    ok: Literal[True] = True
    output: ToolOutput


class RunToolError(_Wire):
    """A call that failed: `{"ok": false, "error": str}`, with `reason` naming the kind of failure."""

    ok: Literal[False] = False
    error: str
    reason: str | None = None


RunToolOutput: TypeAlias = RunToolSuccess | RunToolError
"""The result of a call; `ok` tells which of the two it is."""


class Split(_Wire):
    """A named list of tasks: `{"name": str, "type": "train" | "validation" | "test"}`."""

    name: str
    type: Literal["train", "validation", "test"]

    @classmethod
    def of(cls, value: Any) -> Split:
        """Normalise what an author lists: a Split, `{"name", "type"?}`, or a bare name (spec: Type defaults)."""
        if isinstance(value, Split):
            return value
        if isinstance(value, str):
            return cls(name=value, type=value if value in ("train", "validation", "test") else "validation")  # type: ignore[arg-type]
        if isinstance(value, Mapping):
            return cls.of(value["name"]) if set(value) == {"name"} else cls.model_validate(dict(value))
        if (name := getattr(value, "name", None)) is not None:
            return cls.model_validate({"name": name, "type": getattr(value, "type", None) or cls.of(name).type})
        raise TypeError(f"a split is a Split, a name or an object with a name, not {type(value).__name__}")


class ToolCall(_Wire):
    """The body of `POST /{env_name}/call`. `task_id` identifies the call for reconnection."""

    name: str
    input: dict[str, Any]
    task_id: Annotated[str, Field(min_length=1, max_length=256)] | None = None


class ListTasks(_Wire):
    """The body of `POST /{env_name}/tasks`."""

    split: str


class NumTasks(_Wire):
    """The body of `POST /{env_name}/num_tasks`."""

    split: str


def _integral(value: Any) -> Any:
    # JSON has one kind of number: 3.0 is 3. Text and booleans are not numbers.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


Index: TypeAlias = Annotated[int, BeforeValidator(_integral), Field(strict=True)]


class GetTask(_Wire):
    """The body of `POST /{env_name}/task`."""

    split: str
    index: Index


class GetTaskRange(_Wire):
    """The body of `POST /{env_name}/task_range`: a Python slice, `start` inclusive and `stop` exclusive."""

    split: str
    start: Index | None = None
    stop: Index | None = None


class CreateSession(_Wire):
    """The body of `POST /create`: exactly one of `task_spec` and the pair `split` + `index`."""

    env_name: str | None = None
    task_spec: dict[str, Any] | None = None
    split: str | None = None
    index: Index | None = None
    secrets: dict[str, str] | None = Field(default=None, repr=False)
    toolset_name: str | None = None

    @model_validator(mode="after")
    def _one_task(self) -> CreateSession:
        pair = (self.split is not None, self.index is not None)
        if self.task_spec is not None:
            if any(pair):
                raise ValueError("Provide either task_spec or both split and index, not both")
        elif not any(pair):
            raise ValueError("Provide either task_spec or both split and index, not neither")
        elif not all(pair):
            missing = "index" if pair[0] else "split"
            raise ValueError(f"Provide either task_spec or both split and index; {missing} is missing")
        return self


BLOCKS: TypeAdapter[list[TextBlock | ImageBlock]] = TypeAdapter(
    list[TextBlock | ImageBlock], config=ConfigDict(defer_build=True, ser_json_inf_nan="constants")
)
"""Checks and writes a list of blocks."""
