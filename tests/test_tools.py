"""Tools: how a method becomes a specification and a check of its input, and what is refused with which words."""

import enum
import functools
import typing
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional
from unittest.mock import MagicMock

import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ors.errors import AuthoringError, describe_errors
from ors.tools import InvalidInput, Marks, ToolDefinition, marks_of, terminal, tool, tools_of
from ors.types import JSONObject, ToolOutput
from tools_with_postponed_annotations import InsideClass, InsideFunction, Unreadable

DONE = ToolOutput(blocks="done")


class Answer(BaseModel):
    answer: str
    tries: int = 1


def only(cls: type) -> ToolDefinition:
    """The one tool of a class."""
    (definition,) = tools_of(cls).values()
    return definition


def of(function: Any) -> ToolDefinition:
    """The tool that a function becomes as the method of a class."""
    return only(type("Box", (), {"go": tool(function)}))


# Marks


def test_marks_that_existing_code_looks_at() -> None:
    @tool
    def shared(self) -> ToolOutput: ...

    @tool(shared=False)
    def hidden(self) -> ToolOutput: ...

    assert (shared._env_tool, shared._env_tool_shared) == (True, True)  # type: ignore[attr-defined]
    assert (hidden._env_tool, hidden._env_tool_shared) == (True, False)  # type: ignore[attr-defined]


def test_marks_that_existing_code_sets() -> None:
    def hand_made(self) -> ToolOutput: ...

    hand_made._env_tool = True  # type: ignore[attr-defined]
    assert marks_of(hand_made) == Marks()
    hand_made._env_tool_shared = False  # type: ignore[attr-defined]
    assert marks_of(hand_made) == Marks(shared=False)


@pytest.mark.parametrize(
    ("mark", "marks"),
    [
        (tool, Marks()),
        (tool(), Marks()),
        (tool(shared=False, timeout=2), Marks(shared=False, timeout=2)),
        (tool(concurrent=True), Marks(concurrent=True)),
        (tool(exclusive=True, timeout=0.5), Marks(exclusive=True, timeout=0.5)),
        (terminal, Marks(shared=False, exclusive=True, terminal=True)),
    ],
)
def test_marks(mark: Any, marks: Marks) -> None:
    def go(self) -> ToolOutput: ...

    assert mark(go) is go
    assert marks_of(go) == marks


def test_terminal_stands_over_or_under_tool() -> None:
    @terminal
    @tool(timeout=3)
    def over(self) -> ToolOutput: ...

    @tool(timeout=3)
    @terminal
    def under(self) -> ToolOutput: ...

    assert marks_of(over) == marks_of(under) == Marks(shared=False, exclusive=True, timeout=3, terminal=True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tool(concurrent=True, exclusive=True), "contradicts itself; keep one"),
        (lambda: tool(timeout=0), "seconds above 0"),
        (lambda: tool(timeout=-1), "seconds above 0"),
        (lambda: tool(timeout=float("nan")), "seconds above 0"),
        (lambda: tool(7), "@tool marks functions, not int"),  # type: ignore[call-overload]
        (lambda: tool(property(lambda self: None)), "@tool marks functions, not property"),  # type: ignore[call-overload]
        (lambda: tool(Answer), "@tool marks functions, not ModelMetaclass"),
        (lambda: terminal(tool(concurrent=True)(lambda self: None)), "remove concurrent=True"),
    ],
)
def test_marks_that_make_no_sense(make: Any, said: str) -> None:
    with pytest.raises(AuthoringError, match=said):
        make()


# From a method to a specification


def test_one_model() -> None:
    def go(self, params: Answer) -> ToolOutput:
        """Submit the answer.

        Args:
            params: the answer
        """
        return DONE

    definition = of(go)
    assert definition.spec.model_dump() == {
        "name": "go",
        "description": "Submit the answer.\n\nArgs:\n    params: the answer",
        "input_schema": Answer.model_json_schema(),
    }
    assert definition.arguments({"answer": "4"}) == ((Answer(answer="4"),), {})


def test_no_parameters() -> None:
    definition = of(lambda self: DONE)
    assert (definition.spec.description, definition.spec.input_schema) == ("", None)
    assert definition.arguments({}) == ((), {})
    with pytest.raises(InvalidInput, match="'go' takes no input, got 'a', 'b'$"):
        definition.arguments({"a": 1, "b": 2})
    with pytest.raises(InvalidInput, match="…$") as caught:
        definition.arguments({f"{number}{'x' * 1000}": 1 for number in range(1000)})
    assert len(str(caught.value)) < 500


def test_plain_parameters() -> None:
    def go(self, answer: str, tries: int = 1, *, how: Literal["fast", "slow"] = "fast") -> ToolOutput:
        """Submit the answer.

        It is compared exactly.

        Args:
            answer: The answer itself,
                without words around it.
            tries (int): How often.

        Returns:
            What was found.
        """
        return DONE

    definition = of(go)
    assert definition.spec.description == "Submit the answer.\n\nIt is compared exactly."
    schema = definition.spec.input_schema
    assert schema is not None
    assert schema["required"] == ["answer"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert list(properties) == ["answer", "tries", "how"]
    assert properties["answer"]["description"] == "The answer itself, without words around it."
    assert properties["tries"]["description"] == "How often."
    assert properties["how"] == {"default": "fast", "enum": ["fast", "slow"], "title": "How", "type": "string"}
    assert definition.arguments({"answer": "4"}) == ((), {"answer": "4", "tries": 1, "how": "fast"})


@pytest.mark.parametrize(
    "doc",
    [
        "Say it.\n\nArgs:\n    text: what to say\n",
        "Say it.\n\n:param text: what to say\n",
        "Say it.\n\n:param str text: what to say\n",
        "Say it.\n\nParameters\n----------\ntext : str\n    what to say\n",
        "Say it.\n\n@param text: what to say\n",
    ],
    ids=["Google", "reST", "reST with type", "NumPy", "Epydoc"],
)
def test_docstrings_of_every_style(doc: str) -> None:
    def go(self, text: str) -> ToolOutput: ...

    go.__doc__ = doc
    spec = of(go).spec
    assert spec.description == "Say it."
    assert spec.input_schema is not None
    assert spec.input_schema["properties"]["text"]["description"] == "what to say"


@pytest.mark.parametrize(
    "doc", [None, "", "  \n ", "Only words: with a colon.", "Args:\n", "Args:\n    other: unknown\n"]
)
def test_docstrings_that_say_nothing_of_the_parameters(doc: str | None) -> None:
    def go(self, text: str) -> ToolOutput: ...

    go.__doc__ = doc
    spec = of(go).spec
    assert spec.input_schema is not None
    assert "description" not in spec.input_schema["properties"]["text"]


@given(st.text())
def test_any_docstring_is_read(doc: str) -> None:
    def go(self, text: str) -> ToolOutput: ...

    go.__doc__ = doc
    assert of(go).spec.name == "go"


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


class Place(typing_extensions.TypedDict):
    name: str


def test_parameters_of_many_types() -> None:
    def go(
        self,
        colour: Colour,
        point: Point,
        place: Place,
        answer: Answer,
        any_json: JSONObject,
        maybe: str | None = None,
        many: list[int] = [],  # noqa: B006
        bounded: Annotated[int, Field(ge=1, description="from 1")] = 1,
        free: Any = None,
    ) -> ToolOutput: ...

    definition = of(go)
    assert definition.spec.input_schema is not None
    assert definition.spec.input_schema["properties"]["bounded"]["description"] == "from 1"
    value = {
        "colour": "red",
        "point": {"x": 1},
        "place": {"name": "a"},
        "answer": {"answer": "b"},
        "any_json": {"c": [1]},
    }
    args, kwargs = definition.arguments(value)
    assert args == ()
    assert kwargs == {
        "colour": Colour.RED,
        "point": Point(1),
        "place": {"name": "a"},
        "answer": Answer(answer="b"),
        "any_json": {"c": [1]},
        "maybe": None,
        "many": [],
        "bounded": 1,
        "free": None,
    }
    with pytest.raises(InvalidInput, match="bounded: Input should be greater than or equal to 1$"):
        definition.arguments({**value, "bounded": 0})


def test_names_that_a_model_cannot_have_are_kept() -> None:
    def go(self, schema: str, schema_: str, copy: int, _x: int, model_dump_x: int, json: int = 5) -> ToolOutput:
        """Go.

        Args:
            schema: of the table
            _x: hidden
        """

    definition = of(go)
    assert definition.spec.input_schema is not None
    properties = definition.spec.input_schema["properties"]
    assert list(properties) == ["schema", "schema_", "copy", "_x", "model_dump_x", "json"]
    assert (properties["schema"]["description"], properties["_x"]["description"]) == ("of the table", "hidden")
    value = {"schema": "a", "schema_": "b", "copy": 1, "_x": 2, "model_dump_x": 3}
    assert definition.arguments(value) == ((), {**value, "json": 5})
    with pytest.raises(InvalidInput, match="copy: Field required"):
        definition.arguments({key: value[key] for key in value if key != "copy"})


def test_an_alias_of_the_author_stays_on_the_wire_and_the_parameter_in_the_call() -> None:
    def go(self, from_: Annotated[str, Field(alias="from")]) -> ToolOutput: ...

    assert of(go).arguments({"from": "a"}) == ((), {"from_": "a"})


def test_order_is_alphabetical_and_a_subclass_adds_its_own() -> None:
    class Base:
        @tool
        def zebra(self) -> ToolOutput: ...

        @tool
        def ant(self) -> ToolOutput: ...

        @tool
        def dropped(self) -> ToolOutput: ...

    class Derived(Base):
        dropped = None  # type: ignore[assignment]

        @tool
        def _private(self) -> ToolOutput: ...

        @tool(shared=False)
        def ant(self, more: int) -> ToolOutput: ...

    assert list(tools_of(Base)) == ["ant", "dropped", "zebra"]
    assert list(tools_of(Derived)) == ["_private", "ant", "zebra"]
    assert tools_of(Derived)["ant"].spec.input_schema is not None
    assert tools_of(Base)["ant"].spec.input_schema is None


@pytest.mark.parametrize(
    "returned",
    [
        ToolOutput,
        "ToolOutput",
        type("Special", (ToolOutput,), {}),
        Any,
        Awaitable[ToolOutput],
        Coroutine[Any, Any, ToolOutput],
        Annotated[ToolOutput, "said"],
        typing.TypeVar("Some", bound=ToolOutput),
    ],
    ids=str,
)
def test_return_annotations(returned: Any) -> None:
    def go(self): ...

    go.__annotations__["return"] = returned
    assert of(go).name == "go"


def test_async_tools_are_known() -> None:
    async def go(self) -> ToolOutput: ...

    assert of(go).is_async
    assert not of(lambda self: DONE).is_async


def test_a_wrapped_method_is_the_method_it_wraps() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    class Outside:
        @logged
        @tool(exclusive=True)
        def go(self, params: Answer) -> ToolOutput:
            """Go."""
            return DONE

    class Inside:
        @tool
        @logged
        def go(self, answer: str) -> ToolOutput:
            """Go."""
            return DONE

    assert (only(Outside).spec.description, only(Outside).marks.exclusive) == ("Go.", True)
    assert only(Outside).model is Answer
    assert only(Inside).arguments({"answer": "x"}) == ((), {"answer": "x"})


def test_annotations_may_name_what_a_class_or_a_function_holds() -> None:
    inside_class, inside_function = only(InsideClass), only(InsideFunction)
    assert inside_class.arguments({"answer": "4"})[0][0].answer == "4"
    assert inside_function.arguments({"answer": "4"})[0][0].answer == "4"


def test_attributes_that_answer_to_every_name_are_no_tools() -> None:
    class Lazy:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            raise ConnectionError("asked a service")

    class Box:
        mock = MagicMock()
        lazy = Lazy()

        @tool
        def go(self) -> ToolOutput: ...

    assert list(tools_of(Box)) == ["go"]


# What cannot be a tool


def bare() -> ToolOutput: ...


def untyped(self, answer, tries: int) -> ToolOutput: ...


def starred(self, *answers: str) -> ToolOutput: ...


def open_ended(self, **answers: str) -> ToolOutput: ...


def starred_model(self, *params: Answer) -> ToolOutput: ...


def positional(self, answer: str, /) -> ToolOutput: ...


def generator(self):
    yield DONE


async def async_generator(self):
    yield DONE


def returns_text(self) -> str: ...


def returns_nothing(self) -> None: ...


def returns_perhaps(self) -> ToolOutput | None: ...


def not_json(self, when: object()) -> ToolOutput: ...  # type: ignore[valid-type]


class Opaque:
    pass


def opaque(self, thing: Opaque) -> ToolOutput: ...


def callback(self, then: typing.Callable[[], int]) -> ToolOutput: ...


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (bare, "takes no `self`"),
        (untyped, r"the parameter 'answer' has no type; annotate it, for instance `answer: str`"),
        (starred, r"\*answers: str cannot be an input of a tool; use plain named parameters"),
        (open_ended, r"\*\*answers: str cannot be an input of a tool"),
        (starred_model, r"\*params: .*Answer cannot be an input of a tool"),
        (positional, "answer: str cannot be an input of a tool"),
        (generator, "is a generator; a tool returns one ToolOutput: use `return`"),
        (async_generator, "is a generator"),
        (returns_text, "returns str; return a ToolOutput and annotate it `-> ToolOutput`"),
        (returns_nothing, "returns None; return a ToolOutput"),
        (returns_perhaps, r"returns .*ToolOutput(, NoneType\]| \| None); return a ToolOutput"),
        (not_json, "its annotations cannot be read|cannot be checked as JSON"),
        (opaque, "cannot be checked as JSON"),
        (callback, "has no JSON Schema"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_refused_with_the_method_and_the_mend(method: Any, said: str) -> None:
    box = type("Box", (), {"go": tool(method)})
    with pytest.raises(AuthoringError, match=rf"Box\.go.*{said}"):
        tools_of(box)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (classmethod, "is a classmethod; a tool is an instance method: remove @classmethod"),
        (staticmethod, "is a staticmethod"),
        (property, "is a property; a tool is a method: remove property"),
        (functools.cached_property, "is a cached_property"),
        (lambda function: functools.partialmethod(function), "is a partialmethod"),
        (lambda function: functools.partial(function), None),
        (lambda function: tool(functools.partial(function)), "is a partial, which does not become a method"),
    ],
)
def test_marked_functions_hidden_in_something_else(make: Any, said: str | None) -> None:
    def go(self) -> ToolOutput: ...

    box = type("Box", (), {"go": make(tool(go))})
    if said is None:
        assert tools_of(box) == {}  # a copy that the author made, and that carries no mark
        return
    with pytest.raises(AuthoringError, match=rf"Box\.go {said}"):
        tools_of(box)


def test_a_terminal_tool_takes_one_text_at_most() -> None:
    class Two:
        @terminal
        def end(self, answer: str, more: str) -> ToolOutput: ...

    class One:
        @terminal
        def end(self, answer: Annotated[str, Field(alias="final-answer")]) -> ToolOutput:
            """Take the answer."""

    class None_:
        @terminal
        def end(self) -> ToolOutput: ...

    with pytest.raises(AuthoringError, match=r"Two\.end is @terminal and takes 2 inputs; it may take one"):
        tools_of(Two)
    assert only(One).terminal_spec().model_dump() == {
        "name": "end",
        "arg": "final-answer",
        "description": "Take the answer.",
    }
    assert only(None_).terminal_spec().arg is None


def test_annotations_that_cannot_be_read() -> None:
    with pytest.raises(AuthoringError, match=r"Unreadable\.go: its annotations cannot be read \(name 'Absent'"):
        tools_of(Unreadable)


# Inputs


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    answer: str
    nested: list[Answer] = []

    @field_validator("answer")
    @classmethod
    def _no_blanks(cls, value: str) -> str:
        if " " in value:
            raise ValueError("write it without blanks")
        return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "answer: Field required"),
        ({"answer": 1}, "answer: Input should be a valid string"),
        ({"answer": "a b"}, "answer: write it without blanks"),
        ({"answer": "a", "more": "s3cret"}, "more: Extra inputs are not permitted"),
        ({"answer": "a", "nested": [{"answer": "b"}, {}]}, "nested.1.answer: Field required"),
        ({"nested": 1}, "answer: Field required; nested: Input should be a valid list"),
    ],
)
def test_input_that_does_not_fit(value: dict[str, Any], said: str) -> None:
    def go(self, params: Strict) -> ToolOutput: ...

    with pytest.raises(InvalidInput) as caught:
        of(go).arguments(value)
    assert str(caught.value) == f"Tool input validation error: {said}"


def test_a_validator_that_breaks_is_the_authors_error() -> None:
    class Broken(BaseModel):
        answer: str

        @field_validator("answer")
        @classmethod
        def _break(cls, value: str) -> str:
            raise KeyError(value)

    def go(self, params: Broken) -> ToolOutput: ...

    with pytest.raises(KeyError):
        of(go).arguments({"answer": "x"})


def test_a_model_with_a_constructor_of_its_own_is_made_with_it() -> None:
    class Counting(BaseModel):
        answer: str
        length: int = 0

        def __init__(self, **data: Any) -> None:
            super().__init__(**{**data, "length": len(data.get("answer", ""))})

    def go(self, params: Counting) -> ToolOutput: ...

    (parsed,), _ = of(go).arguments({"answer": "four"})
    assert parsed.length == 4


def test_a_hundred_thousand_faults_make_a_short_answer() -> None:
    with pytest.raises(ValidationError) as caught:
        Strict.model_validate({"answer": "a", **{f"{'k' * 300}{number}": number for number in range(100_000)}})
    said = describe_errors(caught.value)
    assert said.endswith("; and 99980 more")
    assert len(said) < 5_000


def test_optional_is_read_as_the_union_it_is() -> None:
    def go(self, answer: Optional[Answer] = None) -> ToolOutput: ...  # noqa: UP045

    definition = of(go)
    assert definition.arguments({}) == ((), {"answer": None})
    assert definition.arguments({"answer": {"answer": "x"}}) == ((), {"answer": Answer(answer="x")})
