"""Blocks on a terminal: text as it is, images described, saved to a file, and drawn where that can be done."""

from __future__ import annotations

import base64
import binascii
import io
import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ors.cli.showing import number, plain

if TYPE_CHECKING:
    from ors.types import ImageBlock, TextBlock, ToolOutput

__all__ = ["Gallery", "described", "show_blocks", "words_of_reward"]

_MOST_ROWS = 24


class Gallery:
    """Where the images of an episode are saved, numbered as they come."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def save(self, block: ImageBlock) -> Path | None:
        """Write an image to a file; None where it is none."""
        raw = _bytes_of(block)
        if raw is None:
            return None
        self.count += 1
        ending = mimetypes.guess_extension(block.mimeType) or ".bin"
        path = self.folder / f"image-{self.count}{ending}"
        path.write_bytes(raw)
        return path


def show_blocks(screen: Console, blocks: list[TextBlock | ImageBlock], gallery: Gallery) -> None:
    """Print blocks."""
    for block in blocks:
        if block.type == "text":
            screen.print(plain(block.text), soft_wrap=screen.width < 20)
            continue
        path = gallery.save(block)
        drawn = _drawn(screen, _bytes_of(block))
        if drawn is not None:
            screen.print(drawn)
        screen.print(Text(described(block) + (f" saved as {path}" if path else ""), "dim"), soft_wrap=True)


def described(block: TextBlock | ImageBlock) -> str:
    """A block as text: its own, or what an image is."""
    if block.type == "text":
        return plain(block.text)
    raw = _bytes_of(block)
    if raw is None:
        return f"[an image of type {plain(block.mimeType)} that cannot be decoded]"
    size = _size_of(raw)
    measures = f"{size[0]}×{size[1]}, " if size else ""
    return f"[image: {plain(block.mimeType)}, {measures}{_weight(len(raw))}]"


def words_of_reward(output: ToolOutput) -> str:
    """What a call paid, and whether it ended the episode."""
    words = [] if output.reward is None else [f"reward {number(output.reward, '{:+g}')}"]
    if output.finished:
        words.append("the episode is finished")
    return ", ".join(words)


def _bytes_of(block: ImageBlock) -> bytes | None:
    try:
        return base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _weight(size: int) -> str:
    return f"{size} bytes" if size < 1000 else f"{size / 1000:.1f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def _size_of(raw: bytes) -> tuple[int, int] | None:
    """Width and height, of the kinds that say it at once."""
    if raw[:8] == b"\x89PNG\r\n\x1a\n" and len(raw) >= 24:
        return int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")
    if raw[:6] in (b"GIF87a", b"GIF89a") and len(raw) >= 10:
        return int.from_bytes(raw[6:8], "little"), int.from_bytes(raw[8:10], "little")
    picture = _picture(raw)
    return None if picture is None else (picture.width, picture.height)


def _picture(raw: bytes) -> Any:
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        return Image.open(io.BytesIO(raw))
    except Exception:  # pillow raises many things for what is no image
        return None


def _drawn(screen: Console, raw: bytes | None) -> Text | None:
    """An image as half blocks, two pixels in each character, where the terminal has the colours for it."""
    if raw is None or screen.color_system not in ("truecolor", "256"):
        return None
    picture = _picture(raw)
    if picture is None:
        return None
    columns = min(screen.width - 2, 60)
    try:
        picture = picture.convert("RGBA")
        scale = min(columns / picture.width, 2 * _MOST_ROWS / picture.height, 1.0)
        width, height = max(1, round(picture.width * scale)), (max(1, round(picture.height * scale)) + 1) // 2 * 2
        picture = picture.resize((width, height))
    except Exception:
        return None
    pixels = picture.load()

    def colour(x: int, y: int) -> str:
        red, green, blue, opaque = pixels[x, y]
        # what is transparent is shown on white, as most viewers do
        return "#" + "".join(f"{(part * opaque + 255 * (255 - opaque)) // 255:02x}" for part in (red, green, blue))

    text = Text(no_wrap=True)
    for y in range(0, height, 2):
        for x in range(width):
            text.append("▀", f"{colour(x, y)} on {colour(x, y + 1)}")
        text.append("\n" if y + 2 < height else "")
    return text
