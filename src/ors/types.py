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
    JsonValue,
    RootModel,
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
    "SplitType",
    "Task",
    "TerminalToolSpec",
    "TextBlock",
    "ToolCall",
    "ToolOutput",
    "ToolSpec",
]

# Authors put these names into the fields of their models and write `JSONObject | None`, so they are types, not text.
# They say the first level only: a recursive schema is more than some model providers accept for a tool.
JSONValue: TypeAlias = Mapping[str, Any] | Sequence[Any] | str | int | float | bool | None
"""Any JSON value."""
JSONObject: TypeAlias = Mapping[str, JSONValue]
"""A JSON object."""
Task: TypeAlias = JSONObject
"""A task is a JSON object whose structure is the environment's own (spec: Task)."""


class _Wire(BaseModel):
    # "constants" keeps a NaN visible in the output, where encoding finds and refuses it; the default makes it a null
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
    """The tools of an environment or a task: `{"tools": [ToolSpec]}`. Servers may say more beside the list."""

    model_config = ConfigDict(extra="ignore")

    tools: list[ToolSpec]


class ToolOutput(_Wire):
    """What a tool returns: blocks, metadata, a reward that is a number or none, and whether the episode is over.

    `blocks` also takes text, images (`PIL.Image`, bytes, a path) and lists of these. A NaN or infinite reward is
    refused when the output is sent.
    """

    blocks: list[TextBlock | ImageBlock] = Field(json_schema_extra={"minItems": 1})
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

    @property
    def root(self) -> RunToolSuccess:
        """The result itself, for code that unwraps a `RunToolOutput`."""
        return self


class RunToolError(_Wire):
    """A call that failed: `{"ok": false, "error": str}`, with `reason` naming the kind of failure."""

    ok: Literal[False] = False
    error: str
    reason: str | None = None

    @property
    def root(self) -> RunToolError:
        """The result itself, for code that unwraps a `RunToolOutput`."""
        return self


class RunToolOutput(RootModel[Annotated[RunToolSuccess | RunToolError, Field(discriminator="ok")]]):
    """The result of a call; `ok` tells which of the two it is.

    `root` holds it. On the wire it stands there itself.
    """

    model_config = ConfigDict(defer_build=True, ser_json_inf_nan="constants")


SplitType: TypeAlias = Literal["train", "validation", "test"]
"""What the tasks of a split are for."""


class Split(_Wire):
    """A named list of tasks: `{"name": str, "type": "train" | "validation" | "test"}`."""

    name: str
    type: SplitType

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
    # it is sent back as the data of an event: one line that does not start with a blank
    task_id: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\s\x00-\x1f][^\x00-\x1f]*$")] | None = None


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


_NULL: dict[str, JsonValue] = {"type": "null"}
_TASK_OR_PLACE: list[JsonValue] = [
    {
        "required": ["task_spec"],
        "properties": {"task_spec": {"type": "object"}, "split": _NULL, "index": _NULL},
    },
    {
        "required": ["split", "index"],
        "properties": {"task_spec": _NULL, "split": {"type": "string"}, "index": {"type": "integer"}},
    },
]
"""What `CreateSession` checks, said in JSON Schema."""


class CreateSession(_Wire):
    """The body of `POST /create`: exactly one of `task_spec` and the pair `split` + `index`."""

    # an error's text goes to logs, and this body carries secrets
    model_config = ConfigDict(hide_input_in_errors=True, json_schema_extra={"oneOf": _TASK_OR_PLACE})

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
