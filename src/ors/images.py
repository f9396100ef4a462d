"""Content as people have it (text, `PIL.Image`, bytes, paths) → blocks."""

from __future__ import annotations

import base64
import io
import mimetypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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


def encode_image(image: Any) -> tuple[str, str]:
    """Return `(base64 data, MIME type)` of a `PIL.Image`, encoded image bytes, or a path to an image file."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        raw = bytes(image)
        return base64.b64encode(raw).decode(), _sniff(raw)
    if isinstance(image, os.PathLike):
        path = Path(image)
        raw = path.read_bytes()
        mime = mimetypes.guess_type(path.name)[0] or ""
        return base64.b64encode(raw).decode(), mime if mime.startswith("image/") else _sniff(raw)
    if callable(getattr(image, "save", None)) and hasattr(image, "mode"):
        buffer = io.BytesIO()
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


def _sniff(raw: bytes) -> str:
    for signature, mime in _SIGNATURES:
        if raw.startswith(signature):
            return mime
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "image/webp"
    if raw[4:12] in (b"ftypavif", b"ftypheic"):
        return f"image/{raw[8:12].decode()}"
    if raw.lstrip()[:5] in (b"<svg ", b"<?xml"):
        return "image/svg+xml"
    raise ValueError("these bytes are no image of a known kind (PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF, HEIC, SVG)")
