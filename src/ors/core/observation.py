"""Observations of step environments → the blocks that agents read.

Text is a text block: a plain string, or an object whose only field is `text`. Everything else is a text block of its
JSON. Images in it (a string that is a `data:image/…;base64,` URL, or base64 of PNG, JPEG, GIF or WebP, told by its
first bytes) become image blocks after it, in the order in which they stand; the JSON names them `<image 1>` and so on.
"""

from __future__ import annotations

import re
from typing import Any

from ors.jsontext import dump

__all__ = ["blocks_of"]

_URL = re.compile(r"data:(image/[a-z0-9.+-]+);base64,([A-Za-z0-9+/=\s]+)")
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]+={0,2}\s*")
_SIGNATURES = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
_SHORTEST = 32  # characters of a string that is taken for an image
_DEEPEST = 32


def blocks_of(observation: Any) -> list[dict[str, Any]]:
    """The blocks of an observation, never none. Raises JSONValueError for what cannot be JSON."""
    images: list[dict[str, Any]] = []
    rest = _without_images(observation, images, 0)
    if isinstance(rest, dict) and len(rest) == 1 and isinstance(rest.get("text"), str):
        rest = rest["text"]
    text = rest if isinstance(rest, str) else dump(rest).decode()
    if images and (text == "<image 1>" or rest == {"image": "<image 1>"}):
        return images
    return [{"text": text, "detail": None, "type": "text"}, *images]


def _without_images(value: Any, images: list[dict[str, Any]], depth: int) -> Any:
    """The value with every image replaced by its name."""
    if isinstance(value, str):
        found = _image(value)
        if found is None:
            return value
        images.append({"data": found[1], "mimeType": found[0], "detail": None, "type": "image"})
        return f"<image {len(images)}>"
    if depth < _DEEPEST and isinstance(value, dict):
        return {key: _without_images(item, images, depth + 1) for key, item in value.items()}
    if depth < _DEEPEST and isinstance(value, (list, tuple)):
        return [_without_images(item, images, depth + 1) for item in value]
    return value


def _image(text: str) -> tuple[str, str] | None:
    """The MIME type and the data of a string that is an image."""
    if len(text) < _SHORTEST:
        return None
    if text.startswith("data:image/"):
        url = _URL.fullmatch(text)
        return (url[1], url[2]) if url else None
    for signature, mime in _SIGNATURES.items():
        if text.startswith(signature) and _BASE64.fullmatch(text):
            return mime, text
    return None
