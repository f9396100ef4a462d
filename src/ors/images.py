"""Content as people have it (text, `PIL.Image`, bytes, paths) → blocks."""

from __future__ import annotations

import base64
import io
import mimetypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["encode_image", "to_blocks"]

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)
_PNG_MODES = ("1", "L", "LA", "I;16", "P", "RGB", "RGBA")
# what a picture of another mode becomes, where it is not RGB
_CONVERTED = {"I": "I;16", "I;16B": "I;16", "La": "LA", "PA": "RGBA", "RGBa": "RGBA"}


def encode_image(image: Any) -> tuple[str, str]:
    """Return `(base64 data, MIME type)` of a `PIL.Image`, encoded image bytes, or a path to an image file.

    The kind is read from the bytes; a file of a kind unknown here is taken for what its name says. Raises ValueError
    for what is no image, and OSError for a file that cannot be read.
    """
    if isinstance(image, (bytes, bytearray, memoryview)):
        raw = bytes(image)
        return base64.b64encode(raw).decode(), _sniff(raw) or _unknown()
    if isinstance(image, (str, os.PathLike)):
        path = Path(image)
        raw = path.read_bytes()
        guessed = mimetypes.guess_type(path.name)[0] or ""
        mime = _sniff(raw) or (guessed if guessed.startswith("image/") and raw else _unknown(f" ({path})"))
        return base64.b64encode(raw).decode(), mime
    if callable(getattr(image, "save", None)) and hasattr(image, "mode"):
        buffer = io.BytesIO()
        if image.mode not in _PNG_MODES:
            image = image.convert(_CONVERTED.get(image.mode, "RGB"))
        image.save(buffer, format="PNG")
        return base64.b64encode(buffer.getvalue()).decode(), "image/png"
    raise ValueError(f"an image is a PIL.Image, encoded bytes or a path, not {type(image).__name__}")


def to_blocks(value: Any) -> list[Any]:
    """Turn text, an image, a block, or a list of these into a list that validates as blocks.

    What is none of these is left as it is, so that validation can name it.
    """
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview)):
        return [_to_block(item) for item in value]
    return [_to_block(value)]


def _to_block(item: Any) -> Any:
    from ors.types import ImageBlock, TextBlock

    if isinstance(item, str):
        return TextBlock(text=item)
    if isinstance(item, (TextBlock, ImageBlock, Mapping)):
        return item
    if isinstance(item, (bytes, bytearray, memoryview, os.PathLike)) or hasattr(item, "mode"):
        return ImageBlock.from_image(item)
    return item


def _sniff(raw: bytes) -> str | None:
    for signature, mime in _SIGNATURES:
        if raw.startswith(signature):
            return mime
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "image/webp"
    if raw[4:12] in (b"ftypavif", b"ftypheic"):
        return f"image/{raw[8:12].decode()}"
    if raw.lstrip().startswith((b"<svg", b"<?xml", b"<!--", b"<!DOCTYPE svg")) and b"<svg" in raw[:4096]:
        return "image/svg+xml"
    return None


def _unknown(where: str = "") -> NoReturn:
    raise ValueError(
        f"these bytes are no image of a known kind (PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF, HEIC, SVG){where}"
    )
