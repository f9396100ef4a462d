"""The tools: how they are listed, and that the names in the list are those that can be called."""

from __future__ import annotations

from ors.conformance.inputs import is_schema, make_input
from ors.conformance.judging import NotApplicable, array, object_of, require
from ors.conformance.place import Place
from ors.conformance.table import Area

TOOL = Area("ORS", "TOOL")
row = TOOL.row


@row("must", "data-types", "ListToolsOutput", "`GET /{env_name}/tools` answers an object whose `tools` is an array")
async def _tool_001(at: Place) -> None:
    array(await at.tools_answer(), "tools")


@row("must", "data-types", "ToolSpec", "`name` of a tool is a string that is not empty")
async def _tool_002(at: Place) -> None:
    await _each(
        at, lambda spec: isinstance(spec.get("name"), str) and spec["name"], "`name` is no string with characters"
    )


@row("must", "data-types", "ToolSpec", "`description` of a tool is a string")
async def _tool_003(at: Place) -> None:
    await _each(at, lambda spec: isinstance(spec.get("description"), str), "`description` is no string")


@row("must", "data-types", "ToolSpec", "`input_schema` is always there, an object or null")
async def _tool_004(at: Place) -> None:
    await _each(at, lambda spec: "input_schema" in spec, "`input_schema` is missing")
    await _each(
        at,
        lambda spec: spec["input_schema"] is None or isinstance(spec["input_schema"], dict),
        "`input_schema` is neither an object nor null",
    )


@row("must", "data-types", "ToolSpec", "`input_schema` is a valid JSON Schema")
async def _tool_005(at: Place) -> None:
    answer = await at.tools_answer()
    for spec in await at.tools():
        if spec.get("input_schema") is not None:
            wrong = is_schema(spec["input_schema"])
            require(wrong is None, f"`input_schema` of {spec['name']!r} is no JSON Schema: {wrong}", answer)


@row("should", "data-types", "ToolCall", "`input_schema` describes an object, as the input of a call is one")
async def _tool_006(at: Place) -> None:
    answer = await at.tools_answer()
    for spec in await at.tools():
        schema = spec.get("input_schema")
        if isinstance(schema, dict):
            require(
                schema.get("type", "object") == "object",
                f"`input_schema` of {spec['name']!r} has the type {schema.get('type')!r}",
                answer,
            )


@row("must", "data-types", "ToolSpec", "the name of a tool names one tool: none is listed twice")
async def _tool_007(at: Place) -> None:
    names = [spec["name"] for spec in await at.tools()]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(twice is None, f"{twice!r} is listed twice", await at.tools_answer())


@row(
    "should",
    "clients",
    "ToolSpec",
    "a tool has the keys `name`, `description` and `input_schema` and no others: both clients refuse more",
)
async def _tool_008(at: Place) -> None:
    known = {"name", "description", "input_schema"}
    await _each(at, lambda spec: set(spec) <= known, "there are more keys than the three")


@row("must", "data-types", "ToolSpec", "a tool that takes no parameters is listed with null", probe=True)
async def _tool_009(at: Place) -> None:
    specs = {spec["name"]: spec for spec in await at.tools()}
    require(
        "nothing" in specs and specs["nothing"].get("input_schema") is None,
        "`nothing` is not listed with null",
        await at.tools_answer(),
    )


@row("must", "data-types", "ToolSpec", "a tool that is listed with null is called with an empty input", probe=True)
async def _tool_010(at: Place) -> None:
    call = await at.probed("nothing")
    require(call.text() == "nothing", "another tool answered", call.answer)


@row("must", "data-types", "Episode Invariants", "a tool is called by the name that the list has")
async def _tool_011(at: Place) -> None:
    call = await at.a_call()
    result = call.result() if call.stream and not call.stream.first("error") else {}
    unknown = isinstance(result, dict) and (
        result.get("reason") == "not_found" or "not a valid tool" in str(result.get("error"))
    )
    require(not unknown and call.answer.status != 404, f"the listed tool {call.name!r} is not found", call.answer)


@row("must", "data-types", "Episode Invariants", "a name that the list does not have runs nothing")
async def _tool_012(at: Place) -> None:
    call = await at.call(await at.shared(), "no_such_tool", {})
    call.must_not_succeed("there is no tool of this name")


@row(
    "should",
    "clients",
    "/task_tools",
    "`GET /{env_name}/task_tools` answers the tools of a session, as `/tools` has them and perhaps more",
)
async def _tool_013(at: Place) -> None:
    answer = await at.get("task_tools", (await at.shared()).sid)
    found = {spec.get("name") for spec in array(answer, "tools") if isinstance(spec, dict)}
    missing = {spec["name"] for spec in await at.tools()} - found
    require(not missing, f"some tools of /tools are missing: {', '.join(sorted(missing)[:5])}", answer)


@row("should", "task-api", "Two rules that are easy to miss", "the tools are the same when asked for again")
async def _tool_014(at: Place) -> None:
    again = await at.get("tools")
    require(
        object_of(again, "tools")["tools"] == object_of(await at.tools_answer(), "tools")["tools"],
        "the tools have changed",
        again,
    )


@row("should", "data-types", "ToolSpec", "an input can be made from the schema of each tool")
async def _tool_015(at: Place) -> None:
    specs = await at.tools()
    if not specs:
        raise NotApplicable("the environment has no tools")
    for spec in specs:
        schema = spec.get("input_schema")
        if schema is None or is_schema(schema) is None:
            found = make_input(schema if isinstance(schema, dict) else None)
            require(
                found is not None,
                f"no input was found that the schema of {spec['name']!r} accepts",
                await at.tools_answer(),
            )


TOOL.said(
    16,
    "should",
    "author",
    "data-types",
    "ToolSpec",
    "the description says what the tool does, for whoever reads it",
    "check_environment, rules `tool-doc` and `parameter-doc`",
)


async def _each(at: Place, holds: object, wrong: str) -> None:
    answer = await at.tools_answer()
    for number, spec in enumerate(array(answer, "tools")):
        require(isinstance(spec, dict), f"tool {number} is no object", answer)
        require(holds(spec), f"tool {number} ({str(spec.get('name'))[:60]}): {wrong}", answer)  # type: ignore[operator]
