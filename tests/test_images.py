"""Content as authors have it: images of every kind become blocks that hold the image's own bytes."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from ors.images import encode_image, to_blocks
from ors.types import ImageBlock, TextBlock

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'


def encoded(kind: str, mode: str = "RGB") -> bytes:
    """A small picture as a file of a kind."""
    buffer = io.BytesIO()
    PIL.Image.new(mode, (3, 2)).save(buffer, format=kind)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("raw", "mime"),
    [
        (encoded("PNG"), "image/png"),
        (encoded("JPEG"), "image/jpeg"),
        (encoded("GIF"), "image/gif"),
        (encoded("WEBP"), "image/webp"),
        (encoded("BMP"), "image/bmp"),
        (encoded("TIFF"), "image/tiff"),
        (b"\0\0\0\x1cftypavif\0\0\0\0", "image/avif"),
        (b"\0\0\0\x1cftypheic\0\0\0\0", "image/heic"),
        (SVG, "image/svg+xml"),
        (b'\n<?xml version="1.0"?>\n<!-- drawn -->\n' + SVG, "image/svg+xml"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bytes_keep_their_bytes_and_show_their_kind(raw: bytes, mime: str, tmp_path: Path) -> None:
    for image in (raw, bytearray(raw), memoryview(raw)):
        data, found = encode_image(image)
        assert (base64.b64decode(data), found) == (raw, mime)
    (tmp_path / "picture").write_bytes(raw)
    assert encode_image(tmp_path / "picture") == (data, mime)
    assert encode_image(str(tmp_path / "picture")) == (data, mime)


def test_a_misleading_name_does_not_decide(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded("JPEG"))
    assert encode_image(tmp_path / "a.png")[1] == "image/jpeg"


def test_a_kind_unknown_here_is_what_its_name_says(tmp_path: Path) -> None:
    (tmp_path / "a.ico").write_bytes(b"\0\0\1\0")
    assert encode_image(tmp_path / "a.ico")[1] in ("image/vnd.microsoft.icon", "image/x-icon")


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16", "F", "CMYK", "YCbCr", "HSV", "La", "PA", "RGBa"]
)
def test_pictures_of_every_mode_are_sent_as_png(mode: str) -> None:
    data, mime = encode_image(PIL.Image.new(mode, (3, 2)))
    assert mime == "image/png"
    with PIL.Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (3, 2))
        assert ("A" in picture.getbands()) == (mode in ("LA", "La", "PA", "RGBA", "RGBa"))


@pytest.mark.parametrize(
    "image", [b"", b"plain text", b'<?xml version="1.0"?><other/>', b"RIFF....WAVE", 3, None, [b""]]
)
def test_what_is_no_image_is_refused(image: Any) -> None:
    with pytest.raises(ValueError, match="no image of a known kind|an image is a PIL.Image"):
        encode_image(image)
    with pytest.raises(ValueError):
        ImageBlock.from_image(image)


def test_files_that_hold_no_image_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty.png").write_bytes(b"")
    for name in ("notes.txt", "empty.png"):
        with pytest.raises(ValueError, match=name):
            encode_image(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        encode_image(tmp_path / "absent.png")


def test_block_of_an_image() -> None:
    block = ImageBlock.from_image(encoded("GIF"), detail={"frame": 1})
    assert (block.mimeType, block.detail, block.type) == ("image/gif", {"frame": 1}, "image")


def test_content_becomes_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded("PNG"))
    text, mapping = TextBlock(text="as it is"), {"text": "as it is"}
    blocks = to_blocks(["text", encoded("JPEG"), tmp_path / "a.png", PIL.Image.new("L", (1, 1)), text, mapping])
    assert blocks[0] == TextBlock(text="text")
    assert [block.mimeType for block in blocks[1:4]] == ["image/jpeg", "image/png", "image/png"]
    assert blocks[4] is text
    assert blocks[5] is mapping
    assert to_blocks("text") == to_blocks(["text"]) == [TextBlock(text="text")]
    assert to_blocks(encoded("JPEG")) == to_blocks((encoded("JPEG"),))


def test_a_string_among_blocks_is_text_even_when_it_names_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded("PNG"))
    assert to_blocks(str(tmp_path / "a.png")) == [TextBlock(text=str(tmp_path / "a.png"))]


@pytest.mark.parametrize("value", [3, None, object])
def test_what_is_no_content_is_left_for_validation_to_name(value: Any) -> None:
    assert to_blocks(value) == [value]
    assert to_blocks([value]) == [value]


def test_pictures_of_16_bits_keep_them() -> None:
    data, _ = encode_image(PIL.Image.new("I", (1, 1), 40_000))
    with PIL.Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        assert picture.getpixel((0, 0)) == 40_000
