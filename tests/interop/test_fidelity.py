"""What a tool returns is what the client hands out, byte for byte: compared by hash, both clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .environments import PIXEL
from .test_queries import value
from .texts import BLANKS, image_of, sha256, text_of, whole_plane

Play = Callable[..., Any]
Spec = tuple[str, int, int]

# Wherever a server cuts these, the next piece begins with white space, which both clients strip.
ALL_BLANK: list[Spec] = [(f"blank:{ord(blank):x}", size, 3) for blank in BLANKS for size in (9_000, 70_000)]
ALL_BLANK += [("blank:20", 1_000_000, 1), ("blank:3000", 400_000, 0), ("blank:1f", 100_000, 7)]
MOSTLY_BLANK: list[Spec] = [(kind, 200_000, seed) for kind in ("blanks", "indented") for seed in range(4)]
# The first cut moves by one letter from text to text: some cut in every row of these falls before a blank.
SIZES = sorted({0, 1, 2, 3, *(base + by for base in (4_096, 8_192, 65_536, 131_072) for by in range(-2, 3))})
LETTERS: list[Spec] = [("letters", size, 0) for size in SIZES] + [("letters", 3_000_000, 0)]
PLANES: list[Spec] = [(f"plane:{plane}", 30_000, plane) for plane in range(17)]
PLANES += [("planes", size, 1) for size in (1, 4_095, 70_001, 300_000)] + [
    ("tricky", 60_000, seed) for seed in range(4)
]


def played_texts(play: Play, specs: list[Spec]) -> list[dict[str, Any]]:
    actions = [["text", {"kind": kind, "size": size, "seed": seed}] for kind, size, seed in specs]
    (outcomes,) = play("calls", name="probe", variant=None, sessions=[[{}, *actions]])
    return [value(outcome) for outcome in outcomes]


def same(block: dict[str, Any], expected: str) -> bool:
    """Whether a reported text is the expected one; long ones are reported by their hash."""
    text = block["text"]
    return (text == expected) if isinstance(text, str) else (text["sha256"] == sha256(expected))


def changed(outputs: list[dict[str, Any]], specs: list[Spec]) -> list[Spec]:
    """The texts that came back as something else."""
    return [spec for output, spec in zip(outputs, specs, strict=True) if not same(output["blocks"][0], text_of(*spec))]


@pytest.mark.parametrize(
    "specs",
    [ALL_BLANK, MOSTLY_BLANK, LETTERS, PLANES],
    ids=["nothing but blanks", "mostly blanks", "from nothing to 3 MB", "every plane"],
)
def test_texts(play: Play, specs: list[Spec]) -> None:
    assert changed(played_texts(play, specs), specs) == []


def test_every_character_of_every_plane(play: Play) -> None:
    actions = [["text", {"kind": f"whole:{plane}"}] for plane in range(17)]
    (outcomes,) = play("calls", name="probe", variant=None, sessions=[[{}, *actions]])

    blocks = [value(outcome)["blocks"][0] for outcome in outcomes]
    assert [plane for plane in range(17) if not same(blocks[plane], whole_plane(plane))] == []


def test_short_runs_of_blanks_at_every_offset(play: Play) -> None:
    # nearly every place for a border is inside a run, and there is a better one near it
    specs = [(f"runs:{code:x}", 70_000, offset) for code in (0x20, 0x85, 0x3000) for offset in range(0, 41, 4)]
    assert changed(played_texts(play, specs), specs) == []


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
def test_images_up_to_20_megabytes(play: Play, sync: bool) -> None:
    sizes = [58, 61, 3_000, 49_152, 1_000_001, 20_000_000]
    report = play("images", sync=sync, sizes=sizes)

    for size, image in zip(sizes, report, strict=True):
        assert image == {"sha256": sha256(image_of(size, size)), "size": size, "mime": "image/bmp"}


def test_everything_a_result_can_hold(play: Play) -> None:
    ((outcome,),) = play("calls", name="probe", variant=None, sessions=[[{}, ["mixed"]]])

    assert value(outcome) == {
        "blocks": [
            {"text": "\n first", "detail": {"level": 1, "of": [None, True, "\u2028", 0.1]}, "type": "text"},
            {"data": PIXEL, "mimeType": "image/bmp", "detail": {"wide": 1}, "type": "image"},
            {"text": "", "detail": None, "type": "text"},
        ],
        "metadata": {"big": 2**60, "deep": {"list": [[], {}, [1.5]]}, "text": "  \U0001f600"},
        "reward": 0.1 + 0.2,
        "finished": False,
    }


def test_inputs_arrive_as_they_were_sent(play: Play) -> None:
    texts = [("blanks", 100_000, 1), ("tricky", 50_000, 2), ("planes", 100_000, 3), ("letters", 3_000_000, 4)]
    deep: Any = "  core"
    for level in range(60):
        deep = [deep] if level % 2 else {f"\u3000{level}": deep}
    values = [
        2**53 + 1,
        -(10**4299),
        1e-300,
        -0.0,
        1.7976931348623157e308,
        True,
        None,
        "\u2028 ",
        {" ": {"": []}},
        deep,
    ]
    report = play("echoes", texts=texts, values=values)

    assert [echo["back"] for echo in report] == [echo["sent"] for echo in report]
    assert [echo["sent"] for echo in report[: len(texts)]] == [sha256(text_of(*spec)) for spec in texts]
    assert [echo["value"] for echo in report] == [True] * (len(texts) + len(values))
