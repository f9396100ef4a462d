"""The tasks of the texts, and two real data sets, each an environment of under 30 lines, played over HTTP."""

from __future__ import annotations

import base64
import importlib.util
import io
import os

import pytest
from example_files import EXAMPLES, load

import formulas


def text(blocks):
    return load("driver").text_of(blocks)


def place(index=0, split="train"):
    return {"split": split, "index": index}


def listed(serve, name, env, split="train"):
    return serve(name).run(lambda driver: driver.post(f"/{env}/tasks", {"split": split}))["tasks"]


@pytest.mark.parametrize("name", ["anagrams", "coding", "latex_ocr", "maths", "web_navigation"])
def test_an_environment_is_under_thirty_lines(name):
    lines = (EXAMPLES / f"{name}.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < 30


def test_the_maths_of_the_text(serve):
    assert listed(serve, "maths", "maths") == [
        {"question": "What is 2+2?", "answer": "4", "difficulty": "easy"},
        {"question": "If x + 5 = 12, what is x?", "answer": "7", "difficulty": "easy"},
    ]
    for answer, reward in ((" 7 ", 1.0), ("8", 0.0)):
        episode = serve("maths").play("maths", place(1), lambda blocks: ("submit", {"answer": answer}))
        assert (episode.failure, episode.rewards) == (None, [reward])


@pytest.mark.parametrize(
    ("program", "reward"),
    [
        ("print(input()[::-1])", 1.0),
        ("print('olleh')", 0.5),
        ("print(", 0.0),
    ],
)
def test_the_coding_of_the_text(serve, program, reward):
    (task,) = listed(serve, "coding", "coding")
    assert task["problem_id"] == "reverse_string" and len(task["test_cases"]) == 2
    episode = serve("coding").play("coding", place(), lambda blocks: ("submit", {"program": program}))
    assert (episode.failure, episode.rewards) == (None, [reward])


def test_a_program_that_does_not_end_passes_no_test(serve):
    (task,) = listed(serve, "coding", "coding")
    spec = {"task_spec": {**task, "time_limit_seconds": 0.3}}
    program = "word = input()\nwhile word[0] == 'h': pass\nprint(word[::-1])"
    episode = serve("coding").play("coding", spec, lambda blocks: ("submit", {"program": program}))
    assert (episode.failure, episode.rewards) == (None, [0.5])


def test_the_web_navigation_of_the_text(serve):
    def act(blocks):
        said = text(blocks)
        if "iPhone 15: $" in said:
            return "answer", {"price": said.rpartition(": ")[2]}
        return "visit", {"url": said.rstrip(".").split()[-1]}

    episode = serve("web_navigation").play("webnavigation", place(), act)
    assert (episode.failure, episode.rewards) == (None, [1.0])


def test_the_latex_ocr_of_the_guide(serve, tmp_path, monkeypatch):
    """A data set of the same columns, saved where the example is told to look: no network is needed."""
    from PIL import Image

    monkeypatch.setitem(os.environ, "LATEX_OCR", formulas.save(tmp_path))
    served = serve("latex_ocr")

    def act(blocks):
        (image,) = (block for block in blocks if block["type"] == "image")
        red, _, _ = Image.open(io.BytesIO(base64.b64decode(image["data"]))).getpixel((0, 0))
        return "submit", {"latex": formulas.FORMULAS[0] if red > 200 else formulas.FORMULAS[1]}

    for index in (0, 1):
        episode = served.play("latexocr", place(index, "test"), act)
        assert (episode.failure, episode.rewards) == (None, [1.0])
    half = served.play("latexocr", place(0), lambda blocks: ("submit", {"latex": r"\frac { a }"}))
    assert 0 < half.rewards[0] < 1


@pytest.mark.skipif(importlib.util.find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")
def test_the_words_of_a_package(serve, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # the index of the file
    served = serve("anagrams")
    count = served.run(lambda driver: driver.post("/anagrams/num_tasks", {"split": "train"}))["num_tasks"]
    assert count > 30_000
    source = load("anagrams").Anagrams.tasks
    for index in (0, count // 2, count - 1):
        words = source.get("train", index)["words"]
        assert source.key("train", index) == words[0]

        def act(blocks, words=words):
            letters = text(blocks).split("exactly the letters ")[1].split("?")[0]
            assert all(sorted(word) == sorted(letters) for word in words)
            return "submit", {"words": [*words, "nonsense"]}

        episode = served.play("anagrams", place(index), act)
        assert (episode.failure, episode.rewards) == (None, [len(words) / (len(words) + 1)])
