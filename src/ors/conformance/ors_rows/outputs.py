"""What a tool's output holds."""

from __future__ import annotations

import math

from ors.conformance.judging import require
from ors.conformance.place import Place
from ors.conformance.table import Area

OUTPUT = Area("ORS", "OUTPUT")
row = OUTPUT.row


@row("must", "data-types", "ToolOutput", "`blocks` of an output is always there, an array")
async def _output_001(at: Place) -> None:
    output, answer = await at.output()
    require(isinstance(output.get("blocks"), list), "`blocks` is no array", answer)


@row("must", "data-types", "Output Guarantees", "`blocks` is not empty")
async def _output_002(at: Place) -> None:
    output, answer = await at.output()
    require(output.get("blocks") != [], "`blocks` is empty", answer)


@row("must", "data-types", "ToolOutput", "`finished` is always there, true or false")
async def _output_003(at: Place) -> None:
    output, answer = await at.output()
    require(isinstance(output.get("finished"), bool), "`finished` is neither true nor false", answer)


@row("must", "data-types", "Output Guarantees", "`reward`, where it is there, is a number or null")
async def _output_004(at: Place) -> None:
    output, answer = await at.output()
    reward = output.get("reward")
    number = isinstance(reward, int | float) and not isinstance(reward, bool)
    require(reward is None or (number and math.isfinite(reward)), f"`reward` is {str(reward)[:80]!r}", answer)


@row("must", "data-types", "ToolOutput", "`metadata`, where it is there, is an object or null")
async def _output_005(at: Place) -> None:
    output, answer = await at.output()
    require(isinstance(output.get("metadata"), dict | None), "`metadata` is neither an object nor null", answer)


@row(
    "should", "clients", "ToolOutput", "`reward` and `metadata` are always there: both clients read them without asking"
)
async def _output_006(at: Place) -> None:
    output, answer = await at.output()
    require("reward" in output and "metadata" in output, "`reward` or `metadata` is missing", answer)


@row("should", "clients", "ToolOutput", "an output has no other keys than the text's four")
async def _output_007(at: Place) -> None:
    output, answer = await at.output()
    more = set(output) - {"blocks", "reward", "finished", "metadata"}
    require(not more, f"there are more keys: {', '.join(sorted(more)[:5])}", answer)


@row("must", "data-types", "ToolOutput", "`finished` is false where the tool does not say otherwise", probe=True)
async def _output_008(at: Place) -> None:
    call = await at.probed("nothing")
    require(call.output().get("finished") is False, "`finished` is not false", call.answer)


@row("must", "data-types", "ToolOutput", "`finished` is true where the tool ends the episode", probe=True)
async def _output_009(at: Place) -> None:
    async with at.session() as session:
        call = await at.call(session, "finish", {"value": 1.0})
        require(call.output().get("finished") is True, "`finished` is not true", call.answer)


@row("must", "data-types", "ToolOutput", "the reward is the number that the tool gave", probe=True)
async def _output_010(at: Place) -> None:
    for value in (0.1 + 0.2, -2.5, 0.0):
        call = await at.probed("score", value=value)
        reward = call.output().get("reward")
        require(
            isinstance(reward, int | float) and float(reward) == value,
            f"the reward is {reward!r}, not {value!r}",
            call.answer,
        )


@row(
    "must", "data-types", "ToolOutput", "a tool that gives no reward has none: null or left out, and not 0", probe=True
)
async def _output_011(at: Place) -> None:
    call = await at.probed("nothing")
    reward = call.output().get("reward")
    require(reward is None, f"the reward is {reward!r}", call.answer)


@row("must", "data-types", "ToolOutput", "`metadata` that a tool gave arrives", probe=True)
async def _output_012(at: Place) -> None:
    async with at.session() as session:
        call = await at.call(session, "echo", {"text": "x"})
        require(call.output().get("metadata") == {"ran": 1}, "`metadata` is not what the tool gave", call.answer)


@row(
    "should",
    "data-types",
    "Episode Invariants",
    "after `finished` no more tools are called: another call is refused and pays nothing",
    probe=True,
)
async def _output_013(at: Place) -> None:
    async with at.session() as session:
        first = await at.call(session, "finish", {"value": 1.0})
        first.output()
        again = await at.call(session, "finish", {"value": 1.0})
        again.must_not_succeed("the episode had ended, and this paid a reward again")


OUTPUT.said(
    14,
    "should",
    "agent",
    "data-types",
    "ToolOutput",
    "an agent stops calling tools when `finished` is true",
    "it is what a harness does; ORS-OUTPUT-013 shows that a server refuses the call",
)
OUTPUT.said(
    15,
    "may",
    "author",
    "data-types",
    "ToolOutput",
    "rewards come with each action or at the end, as the environment likes",
    "there is nothing that could be wrong",
)
OUTPUT.said(
    16,
    "must",
    "author",
    "data-types",
    "Output Guarantees",
    "`blocks` that a tool returns is not empty, and its reward is a number or none",
    "check_environment, rules `tool-blocks` and `reward`; ORS-OUTPUT-002 and ORS-OUTPUT-004 show what a client sees",
)


@row(
    "must",
    "data-types",
    "Output Guarantees",
    "`blocks` is not empty where the tool gave none: there is a block, or the call is refused",
    probe=True,
)
async def _output_017(at: Place) -> None:
    call = await at.probed("empty")
    if call.succeeded:
        require(call.output().get("blocks"), "`blocks` is empty", call.answer)
    else:
        call.must_not_succeed("it gave no blocks")


@row(
    "should",
    "data-types",
    "Output Guarantees",
    "a reward that is no number is an error, and not none: nobody would notice",
    probe=True,
)
async def _output_018(at: Place) -> None:
    call = await at.probed("nan")
    call.must_not_succeed("its reward is no number")
