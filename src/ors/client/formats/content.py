"""Blocks as providers take them: text that is not empty, and images of the kinds that they know."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ors.client.formats.errors import FormatError
from ors.types import ImageBlock, TextBlock, ToolOutput

__all__ = ["ToolResult", "blocks_of", "data_url", "prepare"]

_ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call, with what the provider's message about it has to name.

    output: what the tool returned, or the text of an error. call_id: the id that the model gave its call. name: the
    tool's name. is_error: the call failed.
    """

    output: ToolOutput | str
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False

    def require(self, field: str, provider: str) -> str:
        """The call's id or name. Raises FormatError where there is none."""
        value: str | None = getattr(self, field)
        if not value:
            raise FormatError(f"a tool result for {provider} names its call; pass {field}=...")
        return value


def blocks_of(result: ToolResult) -> Sequence[TextBlock | ImageBlock]:
    """The blocks of a result; the text of an error is one."""
    return [TextBlock(text=result.output)] if isinstance(result.output, str) else result.output.blocks


def prepare(
    blocks: Iterable[TextBlock | ImageBlock], images: frozenset[str] | None, provider: str, *, blanks: bool = True
) -> list[TextBlock | ImageBlock]:
    """The blocks without empty text (nor blank text, where `blanks` is False), images in one of the kinds `images`.

    An image of another kind becomes a PNG where Pillow is there and can read it; else FormatError is raised.
    """
    out: list[TextBlock | ImageBlock] = []
    for i, block in enumerate(blocks):
        if isinstance(block, ImageBlock):
            out.append(_known(block, images, f"block {i}", provider))
        elif block.text if blanks else block.text.strip():
            out.append(block)
    return out


def data_url(block: ImageBlock) -> str:
    """The image as a `data:` URL."""
    return f"data:{block.mimeType};base64,{block.data}"


def _known(block: ImageBlock, images: frozenset[str] | None, where: str, provider: str) -> ImageBlock:
    mime = block.mimeType.partition(";")[0].strip().lower()
    mime = _ALIASES.get(mime, mime)
    if images is None or mime in images:
        return block if mime == block.mimeType else block.model_copy(update={"mimeType": mime})
    refused = f"{where} is an image of type {block.mimeType!r}; {provider} takes {', '.join(sorted(images))}"
    try:
        from PIL import Image
    except ImportError:
        raise FormatError(f"{refused}. With ors-kit[images] it would be sent as PNG") from None
    try:
        with Image.open(io.BytesIO(base64.b64decode(block.data))) as image:
            return ImageBlock.from_image(image, detail=block.detail)
    except (OSError, ValueError, Image.DecompressionBombError) as exc:
        raise FormatError(f"{refused}, and it cannot be turned into a PNG: {exc}") from exc
