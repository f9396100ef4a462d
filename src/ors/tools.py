"""Tools: the `@tool` and `@terminal` marks, and how a method becomes a tool specification and a check of its input.

A tool takes nothing, one pydantic model, or plain annotated parameters, and returns a `ToolOutput`. A marked method
that cannot be a tool is an error when the class is served, never silently left out.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ors.errors import AuthoringError, describe_errors
from ors.types import TerminalToolSpec, ToolOutput, ToolSpec

__all__ = [
    "InvalidInput",
    "Marks",
    "ToolDefinition",
    "define_tool",
    "marks_of",
    "terminal",
    "tool",
    "tools_of",
]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Marks:
    """What `@tool` and `@terminal` say of a method."""

    shared: bool = True
    concurrent: bool = False
    exclusive: bool = False
    timeout: float | None = None
    terminal: bool = False


class InvalidInput(Exception):
    """The input of a call does not fit the tool; the message is what the agent reads."""


@overload
def tool(fn: F, /) -> F: ...
@overload
def tool(
    *, shared: bool = True, concurrent: bool = False, exclusive: bool = False, timeout: float | None = None
) -> Callable[[F], F]: ...
def tool(
    fn: F | None = None,
    /,
    *,
    shared: bool = True,
    concurrent: bool = False,
    exclusive: bool = False,
    timeout: float | None = None,
) -> F | Callable[[F], F]:
    """Mark a method as a tool.

    shared: listed for every task; with False it is listed only where `list_task_tools` says so (or for every session
    of a class that does not override it). concurrent: calls may overlap with each other and with other tools.
    exclusive: waits for all running calls and holds new ones. timeout: seconds after which a call is cut.
    """
    if concurrent and exclusive:
        raise AuthoringError("@tool(concurrent=True, exclusive=True) contradicts itself; keep one of the two")
    if timeout is not None and not timeout > 0:
        raise AuthoringError(f"@tool(timeout={timeout!r}): a time limit is a number of seconds above 0, or None")

    def mark(function: F) -> F:
        before = marks_of(function)
        if before is not None and before.terminal:
            return _set_marks(function, replace(before, timeout=timeout))
        return _set_marks(function, Marks(shared=shared, concurrent=concurrent, exclusive=exclusive, timeout=timeout))

    return mark if fn is None else mark(fn)


def terminal(fn: F) -> F:
    """Mark a tool (over `@tool`) as the one that receives the agent's final message: not listed, always exclusive."""
    marks = marks_of(fn) or Marks()
    if marks.concurrent:
        raise AuthoringError("@terminal waits for all running calls; remove concurrent=True from its @tool")
    return _set_marks(fn, Marks(shared=False, exclusive=True, timeout=marks.timeout, terminal=True))


def _set_marks(function: F, marks: Marks) -> F:
    target: Any = function.__func__ if isinstance(function, (classmethod, staticmethod)) else function
    if not callable(target) or isinstance(target, type):
        raise AuthoringError(f"@tool marks functions, not {type(function).__name__}; put it directly over the `def`")
    target._env_tool = True
    target._env_tool_shared = marks.shared
    target._env_tool_marks = marks
    return function


def marks_of(function: Any) -> Marks | None:
    """The marks of a function, or None when it is no tool."""
    if isinstance(function, (classmethod, staticmethod)):
        function = function.__func__
    # Class attributes may be anything, mocks and lazy clients too: only marks that `@tool` set are believed.
    try:
        marks = getattr(function, "_env_tool_marks", None)
        if isinstance(marks, Marks):
            return marks
        if getattr(function, "_env_tool", None) is True:
            return Marks(shared=getattr(function, "_env_tool_shared", True) is not False)
    except Exception:
        return None
    return None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A method that is a tool: its specification, its marks, and the check of its input."""

    name: str
    owner: type
    marks: Marks
    model: type[BaseModel] | None
    spread: bool
    is_async: bool
    spec: ToolSpec
    parameters: tuple[str, ...] = ()

    def arguments(self, value: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Check the input of a call and return what to call the method with. Raises InvalidInput."""
        if self.model is None:
            if value:
                raise InvalidInput(f"Tool input validation error: '{self.name}' takes no input, got {_names(value)}")
            return (), {}
        try:
            parsed = self.model.__pydantic_validator__.validate_python(value)
        except ValidationError as exc:
            raise InvalidInput(f"Tool input validation error: {describe_errors(exc)}") from None
        if not self.spread:
            return (parsed,), {}
        fields = type(parsed).model_fields
        return (), {name: getattr(parsed, field) for name, field in zip(self.parameters, fields, strict=True)}

    def terminal_spec(self) -> TerminalToolSpec:
        """How this tool is announced when it is the terminal one."""
        fields = self.model.model_fields if self.model is not None else {}
        arg = next((info.alias or field for field, info in fields.items()), None)
        return TerminalToolSpec(name=self.name, arg=arg, description=self.spec.description)


def tools_of(cls: type) -> dict[str, ToolDefinition]:
    """The tools that a class defines, in alphabetical order. Raises AuthoringError for a mark that cannot be one."""
    found: dict[str, ToolDefinition] = {}
    for name in dir(cls):
        member = inspect.getattr_static(cls, name, None)
        # a tool that a descriptor hides: the mark is on the function inside
        inner = getattr(member, "fget", None) if isinstance(member, property) else None
        if isinstance(member, (functools.cached_property, functools.partialmethod)):
            inner = member.func
        if inner is not None and marks_of(inner) is not None:
            kind = type(member).__name__
            raise AuthoringError(f"{cls.__name__}.{name} is a {kind}; a tool is a method: remove {kind}")
        marks = marks_of(member)
        if marks is None:
            continue
        if isinstance(member, (classmethod, staticmethod)):
            kind = type(member).__name__
            raise AuthoringError(f"{cls.__name__}.{name} is a {kind}; a tool is an instance method: remove @{kind}")
        if not hasattr(type(member), "__get__"):
            raise AuthoringError(
                f"{cls.__name__}.{name} is a {type(member).__name__}, which does not become a method; "
                f"define the tool with `def` and call the other from it"
            )
        found[name] = define_tool(cls, name, member, marks)
    return found


def define_tool(owner: type, name: str, function: Callable[..., Any], marks: Marks) -> ToolDefinition:
    """Read a method's signature and documentation. Raises AuthoringError naming the method and the mend."""
    where = f"{owner.__name__}.{name}"
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise AuthoringError(f"{where} is a generator; a tool returns one ToolOutput: use `return`, not `yield`")
    hints = _type_hints(owner, where, function)
    _check_return(where, hints)
    every = list(inspect.signature(function).parameters.values())
    if not every or every[0].kind is every[0].KEYWORD_ONLY:
        raise AuthoringError(
            f"{where} takes no `self`; a tool is an instance method: add `self` as its first parameter"
        )
    parameters = every[1:]
    doc = inspect.getdoc(function) or ""
    model, spread, description = _input_model(where, name, parameters, hints, doc)
    if marks.terminal and model is not None and len(model.model_fields) > 1:
        raise AuthoringError(f"{where} is @terminal and takes {len(model.model_fields)} inputs; it may take one text")
    schema = None
    if model is not None:
        try:
            schema = model.model_json_schema()
        except Exception as exc:
            raise AuthoringError(f"{where}: its input has no JSON Schema: {_first_line(exc)}") from exc
    return ToolDefinition(
        name=name,
        owner=owner,
        marks=marks,
        model=model,
        spread=spread,
        is_async=inspect.iscoroutinefunction(function),
        spec=ToolSpec(name=name, description=description.strip(), input_schema=schema),
        parameters=tuple(parameter.name for parameter in parameters),
    )


def _type_hints(owner: type, where: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as exc:
        # Postponed annotations may name what a class holds, or the variables of the function that a class is made in.
        code = getattr(inspect.unwrap(function), "__code__", None)
        cells = getattr(inspect.unwrap(function), "__closure__", None) or ()
        local = {name: value for base in reversed(owner.__mro__) for name, value in vars(base).items()}
        for name, cell in zip(code.co_freevars if code else (), cells, strict=False):
            with contextlib.suppress(ValueError):  # an empty cell
                local[name] = cell.cell_contents
        try:
            return typing.get_type_hints(function, localns=local, include_extras=True)
        except Exception:  # the first error says more
            raise AuthoringError(
                f"{where}: its annotations cannot be read ({exc}); "
                f"use types that are importable where the class is defined"
            ) from exc


def _check_return(where: str, hints: Mapping[str, Any]) -> None:
    if "return" not in hints:
        return
    returned = hints["return"]
    if isinstance(returned, typing.TypeVar):
        returned = returned.__bound__ or Any
    if typing.get_origin(returned) is not None and (args := typing.get_args(returned)):
        # Awaitable[ToolOutput], Coroutine[Any, Any, ToolOutput], Annotated[ToolOutput, ...]
        returned = args[0] if typing.get_origin(returned) is typing.Annotated else args[-1]
    if returned is Any or (isinstance(returned, type) and issubclass(returned, ToolOutput)):
        return
    shown = "None" if hints["return"] is type(None) else inspect.formatannotation(hints["return"])
    raise AuthoringError(f"{where} is a tool but returns {shown}; return a ToolOutput and annotate it `-> ToolOutput`")


def _input_model(
    where: str, name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any], doc: str
) -> tuple[type[BaseModel] | None, bool, str]:
    if not parameters:
        return None, False, doc
    if len(parameters) == 1:
        annotation = hints.get(parameters[0].name)
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            _check_kind(where, parameters[0])
            return annotation, False, doc
    fields: dict[str, Any] = {}
    description, documented = _read_docstring(doc)
    for parameter in parameters:
        _check_kind(where, parameter, parameter.POSITIONAL_ONLY)
        if parameter.name not in hints:
            raise AuthoringError(
                f"{where}: the parameter '{parameter.name}' has no type; annotate it, for instance "
                f"`{parameter.name}: str`, or take one pydantic model"
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        # pydantic reserves some names (`schema`, `copy`, a leading underscore); an alias keeps the author's own
        reserved = hasattr(BaseModel, parameter.name) or parameter.name.startswith("_")
        field = f"{parameter.name.strip('_')}_" if reserved else parameter.name
        while field in fields or (reserved and field in hints):
            field += "_"
        extra: dict[str, Any] = {"alias": parameter.name} if reserved else {}
        if text := documented.get(parameter.name):
            extra["description"] = text
        hint = hints[parameter.name]
        fields[field] = (typing.Annotated[hint, Field(**extra)] if extra else hint, default)
    try:
        model = create_model(f"{name}_input", __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)
    except Exception as exc:
        raise AuthoringError(f"{where}: its parameters cannot be checked as JSON: {_first_line(exc)}") from exc
    return model, True, description


def _check_kind(where: str, parameter: inspect.Parameter, *refused: Any) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, *refused):
        raise AuthoringError(
            f"{where}: the parameter {parameter} cannot be an input of a tool; use plain named parameters"
        )


@functools.lru_cache(maxsize=1024)
def _read_docstring(doc: str) -> tuple[str, Mapping[str, str]]:
    """Split a docstring into its description and what it says of each parameter (Google, NumPy, reST, Epydoc)."""
    if not doc:
        return "", {}
    import docstring_parser

    try:
        parsed = docstring_parser.parse(doc)
    except docstring_parser.ParseError:
        return doc, {}
    if not parsed.params:
        return doc, {}
    described = {item.arg_name: " ".join((item.description or "").split()) for item in parsed.params}
    return (parsed.description or "").strip(), described


def _first_line(exc: Exception) -> str:
    return str(exc).partition("\n")[0]


def _names(value: Mapping[str, Any]) -> str:
    shown = ", ".join(repr(str(key)[:60]) for key in list(value)[:5])
    return shown + (", …" if len(value) > 5 else "")
