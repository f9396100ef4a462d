"""The prompt of an episode, and the blocks that it and results are made of."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from ors.conformance.judging import Failed, NotApplicable, array, require
from ors.conformance.place import Place
from ors.conformance.table import Area
from ors.conformance.wire import Answer

PROMPT = Area("ORS", "PROMPT")
BLOCK = Area("ORS", "BLOCK")

_SIGNATURES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
    "image/bmp": b"BM",
}


@PROMPT.row("must", "data-types", "Episode Flow", "`GET /{env_name}/prompt` answers an array of blocks")
async def _prompt_001(at: Place) -> None:
    answer = await at.prompt_answer()
    require(all(isinstance(block, dict) for block in array(answer)), "a block is no object", answer)


@PROMPT.row("should", "tasks-and-splits", "Task as Episode Input", "the prompt is not empty")
async def _prompt_002(at: Place) -> None:
    answer = await at.prompt()
    require(array(answer), "the prompt has no blocks", answer)


@PROMPT.row("must", "tasks-and-splits", "Task Lifecycle", "the prompt is that of the session's task", probe=True)
async def _prompt_003(at: Place) -> None:
    async with at.session(2) as session:
        answer = await at.get("prompt", session.sid)
        blocks = array(answer)
        text = str(blocks[0].get("text")) if blocks and isinstance(blocks[0], dict) else ""
        require(re.search(r"\b2\b", text), "the prompt is not that of task 2", answer)


@PROMPT.row(
    "should", "clients", "/prompt", "the prompt is the same when asked for again: clients ask again after a lost answer"
)
async def _prompt_004(at: Place) -> None:
    again = await at.get("prompt", (await at.shared()).sid)
    require(array(again) == array(await at.prompt()), "the prompt has changed", again)


@PROMPT.row("must", "data-types", "Blocks", "a prompt of text and image keeps both, in their order", probe=True)
async def _prompt_005(at: Place) -> None:
    answer = await at.prompt()
    kinds = [block.get("type") for block in array(answer) if isinstance(block, dict)]
    require(kinds == ["text", "image"], f"the blocks are {kinds}", answer)


PROMPT.said(
    6,
    "should",
    "author",
    "tasks-and-splits",
    "Task as Episode Input",
    "the prompt does not hold the answer of its task",
    "check_environment, rule `prompt-answer`: values of a task that occur in its prompt",
)


@BLOCK.row("must", "data-types", "Output Guarantees", "`type` of a block is exactly text or image")
async def _block_001(at: Place) -> None:
    await _each(at, lambda block: block.get("type") in ("text", "image"), "`type` is neither text nor image")


@BLOCK.row("must", "data-types", "TextBlock", "`text` of a text block is a string")
async def _block_002(at: Place) -> None:
    await _each(at, lambda block: isinstance(block.get("text"), str), "`text` is no string", "text")


@BLOCK.row("must", "data-types", "ImageBlock", "`data` of an image block is a string of base64")
async def _block_003(at: Place) -> None:
    await _each(at, lambda block: _decoded(block) is not None, "`data` is no base64", "image")


@BLOCK.row("must", "data-types", "ImageBlock", "`mimeType` of an image block is a MIME type")
async def _block_004(at: Place) -> None:
    def fits(block: dict[str, Any]) -> bool:
        kind = block.get("mimeType")
        return isinstance(kind, str) and re.fullmatch(r"image/[\w.+-]+", kind) is not None

    await _each(at, fits, "`mimeType` is no MIME type of an image", "image")


@BLOCK.row("must", "data-types", "TextBlock", "`detail` of a block, where it is there, is an object or null")
async def _block_005(at: Place) -> None:
    await _each(
        at, lambda block: isinstance(block.get("detail"), dict | None), "`detail` is neither an object nor null"
    )


@BLOCK.row("should", "data-types", "ImageBlock", "`data` is an image of the type that `mimeType` says")
async def _block_006(at: Place) -> None:
    def fits(block: dict[str, Any]) -> bool:
        signature = _SIGNATURES.get(str(block.get("mimeType")))
        return signature is None or (_decoded(block) or b"").startswith(signature)

    await _each(at, fits, "`data` is not of this type", "image")


@BLOCK.row("must", "data-types", "Blocks", "a result of text and image keeps both, in their order", probe=True)
async def _block_007(at: Place) -> None:
    call = await at.probed("image")
    kinds = [block.get("type") for block in call.output().get("blocks", []) if isinstance(block, dict)]
    require(kinds == ["text", "image"], f"the blocks are {kinds}", call.answer)


@BLOCK.row("must", "data-types", "TextBlock", "`detail` that a tool gave arrives", probe=True)
async def _block_008(at: Place) -> None:
    call = await at.probed("image")
    blocks = call.output().get("blocks") or [{}]
    require(
        blocks[0].get("detail") == {"level": 1}, "`detail` of the first block is not what the tool gave", call.answer
    )


@BLOCK.row("should", "clients", "Blocks", "a block has the keys of its type and no others: both clients refuse more")
async def _block_009(at: Place) -> None:
    known = {"text": {"type", "text", "detail"}, "image": {"type", "data", "mimeType", "detail"}}
    await _each(at, lambda block: set(block) <= known.get(str(block.get("type")), set(block)), "there are more keys")


def _decoded(block: dict[str, Any]) -> bytes | None:
    data = block.get("data")
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) and data else None
    except (binascii.Error, ValueError):
        return None


async def _each(at: Place, holds: Callable[[dict[str, Any]], object], wrong: str, kind: str | None = None) -> None:
    """Something must hold for every block of this type that was seen."""
    seen = False
    for where, block, answer in await _blocks(at):
        if kind is None or block.get("type") == kind:
            seen = True
            require(holds(block), f"{where}: {wrong}", answer)
    if not seen:
        raise NotApplicable(f"no {kind or ''} block was seen".replace("  ", " "))


async def _blocks(at: Place) -> list[tuple[str, dict[str, Any], Answer]]:
    """The blocks of the prompt and of a result; of the probe, of its image too."""
    found: list[tuple[str, dict[str, Any], Answer]] = []
    prompt = await at.prompt()
    lists: list[tuple[str, Any, Answer]] = []
    try:
        lists.append(("prompt", array(prompt), prompt))
    except Failed:
        pass
    try:
        output, answer = await at.output()
        lists.append(("result", output.get("blocks"), answer))
    except NotApplicable:
        pass
    if at.is_probe:
        call = await at.probed("image")
        try:
            lists.append(("result of image", call.output().get("blocks"), call.answer))
        except Failed:
            pass
    for where, blocks, answer in lists:
        for number, block in enumerate(blocks if isinstance(blocks, list) else []):
            if isinstance(block, dict):
                found.append((f"block {number} of the {where}", block, answer))
    return found
