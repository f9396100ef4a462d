"""Every example is served by running its file, and played over HTTP to the reward that the play deserves."""

from __future__ import annotations

import base64
import io
import itertools
import json
import math
import re

import pytest
from example_files import EXAMPLES, load


def text(blocks):
    return load("driver").text_of(blocks)


@pytest.mark.parametrize("name", ["clock_reading", "lights_out", "museum", "sealed_answers"])
def test_an_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 100


# lights_out.py


def solve(board):
    """Presses that put out all lights: the first row is guessed, each further row presses below what is still lit."""
    lit = {(r, c) for r, row in enumerate(board) for c, cell in enumerate(row.split()) if cell == "#"}
    size = len(board)
    for first in itertools.product((False, True), repeat=size):
        left, presses = set(lit), []
        for row in range(size):
            for column in range(size):
                if first[column] if row == 0 else (row - 1, column) in left:
                    presses.append((row, column))
                    left ^= {(row, column), (row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)}
        if not {(r, c) for r, c in left if 0 <= r < size and 0 <= c < size}:
            return presses
    raise AssertionError("this board has no solution")


def presses_left(blocks):
    return int(re.search(r"(\d+) presses", text(blocks))[1])


@pytest.mark.parametrize(("split", "index"), [("train", 0), ("train", 9_999), ("test", 0), ("test", 199)])
def test_every_press_pays_and_a_solved_board_pays_one_in_all(serve, split, index):
    planned = []

    def act(blocks):
        if not planned:
            planned.extend(solve(text(blocks).split("\n\n")[1].splitlines()))
        row, column = planned.pop(0)
        return "press", {"row": row, "column": column}

    episode = serve("lights_out").play("lightsout", {"split": split, "index": index}, act)
    assert episode.failure is None
    assert planned == []
    assert len(episode.rewards) == len(episode.call_seconds) > 1
    assert any(reward < 0 for reward in episode.rewards) or len(set(episode.rewards)) > 1
    assert math.fsum(episode.rewards) == pytest.approx(1)


def test_presses_run_out(serve):
    seen = []

    def act(blocks):
        seen.append(presses_left(blocks))
        return "press", {"row": 2, "column": 2}

    episode = serve("lights_out").play("lightsout", {"split": "test", "index": 0}, act)
    assert episode.failure is None
    assert seen == list(range(18, 0, -1))
    assert math.fsum(episode.rewards) == pytest.approx(0)  # pressed an even number of times, the board is as it was


def test_a_press_beside_the_board_is_refused_and_costs_nothing(serve):
    async def use(driver):
        sid = (await driver.post("/create_session"))["sid"]
        await driver.post("/create", {"env_name": "lightsout", "split": "test", "index": 0}, sid)
        with pytest.raises(load("driver").Failure, match="Tool 'press' failed: the board has rows and columns 0 to 4"):
            await driver.call("lightsout", sid, "press", {"row": 5, "column": 0})
        output = await driver.call("lightsout", sid, "press", {"row": 0, "column": 0})
        await driver.post("/delete", None, sid)
        return output

    assert serve("lights_out").run(use)["metadata"]["left"] == 17


# clock_reading.py


def read_clock(blocks):
    """Read the hands from the pixels: where red is far from the centre, and where black is near it."""
    from PIL import Image

    (block,) = (block for block in blocks if block["type"] == "image")
    assert block["mimeType"] == "image/png"
    image = Image.open(io.BytesIO(base64.b64decode(block["data"]))).convert("RGB")
    assert image.size == (256, 256)
    pixels = image.tobytes()
    red, black = [], []
    for x, y in itertools.product(range(16, 240), repeat=2):
        r, g, b = pixels[3 * (256 * y + x) : 3 * (256 * y + x) + 3]
        if g >= 90:  # the face, and what is half covered
            continue
        dx, dy = x - 127.5, y - 127.5
        if r > 150 and math.hypot(dx, dy) > 60:
            red.append((dx, dy))
        elif max(r, b) < 60 and 15 < math.hypot(dx, dy) < 60:
            black.append((dx, dy))

    def turn(points):
        return math.atan2(sum(dx for dx, _ in points), -sum(dy for _, dy in points)) / (2 * math.pi) % 1

    minute = round(turn(red) * 60) % 60
    if not black:  # the minute hand covers the hour hand
        black = red
    hour = round(turn(black) * 12 - minute / 60) % 12
    return hour or 12, minute


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_clock_can_be_read_from_its_image(serve, split):
    def act(blocks):
        assert "What time" in text(blocks)
        hour, minute = read_clock(blocks)
        return "answer", {"hour": hour, "minute": minute}

    async def play(driver):
        return [await driver.play("clockreading", {"split": split, "index": n}, act) for n in range(0, 120, 15)]

    episodes = serve("clock_reading").run(play)
    assert [episode.failure for episode in episodes] == [None] * 8
    assert [episode.rewards for episode in episodes] == [[1.0]] * 8


@pytest.mark.parametrize(("off", "reward"), [(0, 1.0), (2, 0.5), (-1, 0.5), (3, 0.0), (-360, 0.0)])
def test_a_clock_read_nearly_right_pays_half(serve, off, reward):
    served = serve("clock_reading")
    at = (served.module.TASKS["test"][3] + off) % 720
    answer = {"hour": at // 60 or 12, "minute": at % 60}
    episode = served.play("clockreading", {"split": "test", "index": 3}, lambda _: ("answer", answer))
    assert (episode.failure, episode.rewards) == (None, [reward])


def test_the_splits_share_no_clock_and_a_task_does_not_tell_the_time(serve):
    served = serve("clock_reading")
    train, test = served.module.TASKS["train"], served.module.TASKS["test"]
    assert sorted(train + test) == list(range(720))
    tasks = served.run(lambda driver: driver.post("/clockreading/tasks", {"split": "test"}))["tasks"]
    assert tasks == [{"split": "test", "index": index} for index in range(120)]


def test_a_time_that_no_clock_shows_is_refused(serve):
    answer = {"hour": 13, "minute": 0}
    episode = serve("clock_reading").play("clockreading", {"split": "test", "index": 0}, lambda _: ("answer", answer))
    assert episode.failure.kind == "call refused"
    assert "hour: " in str(episode.failure)


# sealed_answers.py

KEY = "the-key-of-an-example"
ANSWERS = ["Tungsten", "20", "neptune", " königsberg ", "1260", "pancreas", "isthmus", "MERCURY"]


def test_sealed_answers_are_checked_with_the_key_of_the_session(serve):
    async def play(driver):
        episodes = []
        for index, right in enumerate(ANSWERS):
            for answer in (right, "something else"):
                task = {"split": "test", "index": index}
                act = lambda _, answer=answer: ("answer", {"text": answer})  # noqa: E731
                episodes.append(await driver.play("sealedanswers", task, act, secrets={"answer_key": KEY}))
        return episodes

    episodes = serve("sealed_answers").run(play)
    assert [episode.failure for episode in episodes] == [None] * 16
    assert [episode.rewards for episode in episodes] == [[1.0], [0.0]] * 8


@pytest.mark.parametrize("secrets", [None, {"answer_key": "the-wrong-key-of-an-example"}])
def test_without_the_key_there_is_no_episode_and_no_reward(serve, secrets):
    act = lambda _: ("answer", {"text": "tungsten"})  # noqa: E731
    served = serve("sealed_answers")
    episode = served.play("sealedanswers", {"split": "test", "index": 0}, act, secrets=secrets)
    assert episode.rewards == []
    assert episode.failure.kind == "HTTP 500"
    assert "the secret 'answer_key' is missing or is not the key" in str(episode.failure)


def test_no_answer_and_no_log_shows_the_key(serve):
    served = serve("sealed_answers")

    async def use(driver):
        shown = []
        for key in (KEY, "the-wrong-key-of-an-example"):
            sid = (await driver.post("/create_session"))["sid"]
            body = {"env_name": "sealedanswers", "split": "test", "index": 0, "secrets": {"answer_key": key}}
            shown.append(await driver.post("/create", body, sid))
            for step in (
                lambda sid=sid: driver.get("/sealedanswers/prompt", sid),
                lambda sid=sid: driver.get("/sealedanswers/task_tools", sid),
                lambda sid=sid: driver.call("sealedanswers", sid, "answer", {"wrong": "input"}),
                lambda sid=sid: driver.call("sealedanswers", sid, "answer", {"text": "tungsten"}),
            ):
                try:
                    shown.append(await step())
                except load("driver").Failure as failure:
                    shown.append(str(failure))
            await driver.post("/delete", None, sid)
        shown.append(await driver.post("/sealedanswers/tasks", {"split": "test"}))
        return json.dumps(shown)

    shown = served.run(use)
    assert '"reward": 1.0' in shown
    assert "PermissionError" in shown
    told = shown + served.process.log_text()
    assert "the-key-of-an-example" not in told
    assert "the-wrong-key" not in told


def test_no_answer_is_in_the_file_of_sealed_answers():
    data = (EXAMPLES / "data" / "sealed_answers.json").read_text(encoding="utf-8").casefold()
    assert [answer for answer in ANSWERS if re.search(rf'[" ]{re.escape(answer.strip().casefold())}[" ]', data)] == []


# museum.py

QUESTIONS = json.loads((EXAMPLES / "data" / "museum" / "questions.json").read_text(encoding="utf-8"))


def test_an_agent_that_follows_the_papers_finds_the_answer(serve):
    def agent(question):
        assert "barometer from Rotterdam on loan now" in question
        found = yield "list_files", {}
        assert re.findall(r"^\S+(?= \()", found, re.M)[:2] == ["catalogue.csv", "conservation.txt"]
        found = yield "search", {"text": "ROTTERDAM"}
        number = re.search(r"M-\d+", found)[0]
        loans = yield "read_file", {"name": "loans.csv"}
        rows = [line.split(",") for line in loans.splitlines()]
        borrower = next(row[1] for row in rows if row[0] == number and not row[3])
        yield "answer", {"text": borrower}

    moves = []

    def act(blocks):
        if not moves:
            moves.append(agent(text(blocks)))
            return next(moves[0])
        return moves[0].send(text(blocks))

    episode = serve("museum").play("museum", {"split": "train", "index": 0}, act)
    assert (episode.failure, episode.rewards, len(episode.call_seconds)) == (None, [1.0], 4)


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_answer_is_in_the_papers_and_pays(serve, split):
    served = serve("museum")
    papers = "\n".join(path.read_text() for path in served.module.DOCUMENTS.rglob("*") if path.is_file())

    async def play(driver):
        return [
            (await driver.play("museum", {"split": split, "index": n}, lambda _, a=a: ("answer", {"text": a}))).rewards
            for n, row in enumerate(QUESTIONS[split])
            for a in (row["answer"].upper(), "Rembrandt")
        ]

    assert [row["answer"] for row in QUESTIONS[split] if row["answer"] not in papers.replace("\n", " ")] == []
    assert served.run(play) == [[1.0], [0.0]] * len(QUESTIONS[split])


def test_a_task_of_the_museum_has_no_answer(serve):
    tasks = serve("museum").run(lambda driver: driver.post("/museum/tasks", {"split": "test"}))["tasks"]
    assert [set(task) for task in tasks] == [{"split", "index", "question"}] * 3


@pytest.mark.parametrize(
    "name",
    [
        "../questions.json",
        "letters/../../questions.json",
        str(EXAMPLES / "museum.py"),
        "letters",
        "",
        "a\0b",
        "x" * 9999,
    ],
)
def test_only_the_documents_can_be_read(serve, name):
    def act(blocks):
        return "read_file", {"name": name}

    episode = serve("museum").play("museum", {"split": "test", "index": 0}, act)
    assert episode.failure.kind == "call refused"
    assert "there is no document" in str(episode.failure)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path, monkeypatch):
    module = load("museum")
    folder = (tmp_path / "documents").resolve()
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "plain.txt").write_text("a plain one")
    monkeypatch.setattr(module, "DOCUMENTS", folder)
    museum = module.Museum(task_spec={"split": "test", "index": 0})
    museum.setup()
    assert museum.read_file("plain.txt").blocks[0].text == "a plain one"
    with pytest.raises(module.ToolError):
        museum.read_file("link.txt")
    assert museum.search("e").blocks[0].text == "plain.txt:1: a plain one"


# all of them

FIRST_CALLS = {
    "clock_reading": ("clockreading", "answer", {"hour": 12, "minute": 0}),
    "lights_out": ("lightsout", "press", {"row": 0, "column": 0}),
    "museum": ("museum", "answer", {"text": "Rembrandt"}),
    "reasoning_gym": ("survo", "submit", {"answer": "no answer at all"}),
    "sealed_answers": ("sealedanswers", "answer", {"text": "something else"}),
}


@pytest.mark.parametrize("name", FIRST_CALLS)
def test_the_command_line_serves_an_example_from_a_process_of_its_own(serve, name):
    environment, tool, arguments = FIRST_CALLS[name]
    served = serve(name, "run_with_cli.py")
    task = {"split": "test", "index": 1}
    episode = served.play(environment, task, lambda _: (tool, arguments), secrets={"answer_key": KEY})
    assert episode.failure is None
    assert len(episode.rewards) == len(episode.call_seconds) >= 1
    assert math.fsum(episode.rewards) < 1


def test_every_example_is_played_here():
    """A new example comes with a play of it; the demo and what it imports are no examples."""
    files = {path.stem for path in EXAMPLES.glob("*.py")} - {"agents", "demo", "driver", "serving"}
    with_tasks = {"anagrams", "coding", "latex_ocr", "maths", "web_navigation"}  # played in test_task_examples.py
    assert files == {"clock_reading", "lights_out", "museum", "reasoning_gym", "sealed_answers"} | with_tasks
