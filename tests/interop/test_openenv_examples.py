"""Every environment of the examples, played over both protocols by each client: the rewards are the same."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

import formulas
from ors import Environment
from ors.client import ORS
from served import Served

from .peers import ROOT, clean_environ, peer_python
from .processes import Driver
from .test_queries import value

EXAMPLES = ROOT / "examples"
DRIVER = Path(__file__).parent / "drivers" / "with_openenv.py"
LIMIT_S = 30.0


@dataclass
class Game:
    """An episode: where it begins, and the calls that are made."""

    file: str
    env: str
    task: dict[str, Any]
    calls: list[tuple[str, dict[str, Any]]]
    secrets: dict[str, str] = field(default_factory=dict)


KEY = {"answer_key": "the-key-of-an-example"}
PRESSES = [("press", {"row": number % 5, "column": number % 3}) for number in range(18)]
SEARCH = [("search", {"text": "ROTTERDAM"}), ("answer", {"text": "Rembrandt"})]
GAMES = [
    Game("lights_out", "lightsout", {"split": "test", "index": 3}, PRESSES),
    Game("clock_reading", "clockreading", {"split": "test", "index": 3}, [("answer", {"hour": 3, "minute": 7})]),
    Game("museum", "museum", {"split": "train", "index": 0}, SEARCH),
    Game("sealed_answers", "sealedanswers", {"split": "test", "index": 0}, [("answer", {"text": "Tungsten"})], KEY),
    Game("sealed_answers", "sealedanswers", {"split": "test", "index": 1}, [("answer", {"text": "21"})], KEY),
]
PROGRAM = "print(input()[::-1])"
VISITS: list[tuple[str, dict[str, Any]]] = [
    ("visit", {"url": "https://example.com/phones"}),
    ("answer", {"price": "$799"}),
]
FIRST = {"split": "train", "index": 0}
GAMES += [
    Game("maths", "maths", FIRST, [("submit", {"answer": "4"})]),
    Game("coding", "coding", FIRST, [("submit", {"program": PROGRAM})]),
    Game("web_navigation", "webnavigation", FIRST, VISITS),
    Game("latex_ocr", "latexocr", {"split": "test", "index": 1}, [("submit", {"latex": "x ^ { 2 }"})]),
]
if importlib.util.find_spec("reasoning_gym") is not None:
    GAMES.append(Game("anagrams", "anagrams", FIRST, [("submit", {"words": ["loop", "pool"]})]))
    GAMES.append(Game("reasoning_gym", "survo", {"split": "test", "index": 5}, [("submit", {"answer": "none"})]))

Played = list[tuple[list[float | None], bool]]


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"played_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def environments() -> list[Any]:
    """The environments of all examples."""
    found: list[Any] = []
    for name in dict.fromkeys(game.file for game in GAMES):
        module = load(name)
        found += [
            each
            for key, each in vars(module).items()
            if isinstance(each, type) and issubclass(each, Environment) and each.__module__ == module.__name__
            if not key.startswith("_")
        ]
    return found


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LATEX_OCR", formulas.save(tmp_path_factory.mktemp("formulas")))
        running = Served(environments())
    yield running
    running.stop()


@pytest.fixture(scope="module")
def expected(examples: Served) -> Played:
    """By our own client, over the Open Reward Standard."""
    played: Played = []
    with ORS(base_url=examples.url) as client:
        for game in GAMES:
            with client.environment(game.env).session(**game.task, secrets=game.secrets) as session:
                outputs = [session.call_tool(name, arguments) for name, arguments in game.calls]
                played.append(([output.reward for output in outputs], outputs[-1].finished))
    return played


def test_every_example_is_among_them(expected: Played) -> None:
    programs = {path.stem for path in EXAMPLES.glob("*.py") if "Server([" in path.read_text()}
    assert {game.file for game in GAMES} >= programs - {"reasoning_gym", "demo", "serving"}
    rewards = [reward for rewards, _ in expected for reward in rewards]
    assert any(reward is not None and reward > 0 for reward in rewards) and 0.0 in rewards
    assert {done for _, done in expected} == {True}


def test_over_openenvs_socket(examples: Served, expected: Played) -> None:
    played: Played = []
    for game in GAMES:
        address = f"{examples.url.replace('http', 'ws')}/{game.env}/ws"
        with connect(address, compression=None, proxy=None, open_timeout=LIMIT_S) as socket:
            frames = [{"type": "reset", "data": {**game.task, "secrets": game.secrets}}]
            frames += [{"type": "step", "data": action(name, arguments)} for name, arguments in game.calls]
            heard = []
            for frame in frames:
                socket.send(json.dumps(frame))
                heard.append(json.loads(socket.recv(timeout=LIMIT_S)))
        assert {answer["type"] for answer in heard} == {"observation"}, heard
        assert heard[0]["data"]["observation"]["prompt"]
        played.append(([answer["data"]["reward"] for answer in heard[1:]], heard[-1]["data"]["done"]))
    assert played == expected


def test_over_openenvs_http(examples: Served, expected: Played) -> None:
    played: Played = []
    for game in GAMES:
        begun = examples.client.post(f"/{game.env}/reset", json={**game.task, "secrets": game.secrets})
        headers = {"X-Session-ID": begun.headers["X-Session-ID"]}
        answers = [
            examples.client.post(f"/{game.env}/step", json={"action": action(name, arguments)}, headers=headers).json()
            for name, arguments in game.calls
        ]
        played.append(([answer["reward"] for answer in answers], answers[-1]["done"]))
    assert played == expected


def action(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "call_tool", "tool_name": name, "arguments": arguments}


def test_by_the_client_of_openenv(examples: Served, expected: Played) -> None:
    """Its clients know one environment of a server, the first; here each has its own path."""
    scenarios = [
        ["episode", f"{examples.url}/{game.env}", {**game.task, "secrets": game.secrets}, game.calls] for game in GAMES
    ]
    done = subprocess.run(
        [str(peer_python("openenv")), str(DRIVER), json.dumps(scenarios)],
        capture_output=True,
        text=True,
        env=clean_environ(),
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert [tuple(outcome) for outcome in json.loads(done.stdout.splitlines()[-1])] == expected


def test_by_the_clients_of_ors(examples: Served, expected: Played, driver: Driver) -> None:
    played: Played = []
    for game in GAMES:
        task = examples.client.post(f"/{game.env}/task", json=game.task).json()["task"]
        sessions = [[task, *([name, arguments] for name, arguments in game.calls)]]
        variant = game.env if driver.peer == "openreward" else None
        arguments: dict[str, Any] = {"name": game.env, "variant": variant, "sessions": sessions}
        if game.secrets:
            arguments["secrets"] = game.secrets
        [outcomes] = driver.play(examples.url, "calls", **arguments)
        outputs = [value(outcome) for outcome in outcomes]
        played.append(([output["reward"] for output in outputs], outputs[-1]["finished"]))
    assert played == expected
