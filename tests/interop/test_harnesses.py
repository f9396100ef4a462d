"""Harnesses that people run: each evaluates a scripted model on our server, over real HTTP on both sides."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .environments import PIXEL
from .peers import clean_environ, peer_python
from .processes import HERE, ServedEnvironments
from .scripted_model import ScriptedModel
from .test_queries import TOOLS

EPISODES = 8
LIMIT_S = 120
REWARDS = [0.0 if index == 3 else 1.0 for index in range(EPISODES)]
"""The model's sum is wrong for task 3."""


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


def run(python: Path, arguments: list[str], server: ServedEnvironments, model: ScriptedModel, folder: Path) -> Any:
    """The process of a harness, which has to end well."""
    environ = clean_environ(
        OPENREWARD_API_KEY="none",
        OPENREWARD_API_URL=server.url,
        OPENREWARD_SESSION_URL=server.url,
        OPENAI_API_KEY="none",
        OPENROUTER_API_KEY="none",
        SCRIPTED_API_KEY="none",
        SCRIPTED_BASE_URL=model.url,
        HOME=str(folder),
    )
    command = [str(python), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=folder, timeout=LIMIT_S)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done


def schema_of(tools: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The parameters that the model was shown for a tool."""
    shown = {(tool.get("function") or tool)["name"]: tool.get("function") or tool for tool in tools}
    parameters: dict[str, Any] = shown[name]["parameters"]
    return parameters


def firehorse(server: ServedEnvironments, model: ScriptedModel, folder: Path, *options: str) -> dict[str, Any]:
    """The summary that firehorse writes of an evaluation."""
    arguments = ["-m", "firehorse.cli", "--agent", "react", "--split", "train", "--provider-url", model.url]
    arguments += ["--no-logging", "--output-dir", "out", "--env", "local/probe", *options]
    done = run(peer_python("firehorse-cli"), arguments, server, model, folder)
    assert ("retrying with no toolset" in done.stderr) == ("--toolset" in options)
    summary: dict[str, Any] = json.loads((folder / "out" / "run_result.json").read_text())
    assert (summary["n_completed"], summary["n_failed"]) == (summary["n_tasks"], 0)
    assert all(trial["finished"] and not trial["error"] for trial in summary["trials"])
    return summary


@pytest.mark.parametrize(("provider", "route"), [("openai", "/v1/responses"), ("openrouter", "/v1/chat/completions")])
def test_firehorse(provider: str, route: str, server: ServedEnvironments, model: ScriptedModel, tmp_path: Path) -> None:
    summary = firehorse(server, model, tmp_path, "--model", f"{provider}/scripted", "--max-tasks", str(EPISODES))

    assert summary["avg_reward"] == sum(REWARDS) / EPISODES
    trials = sorted(summary["trials"], key=lambda trial: trial["task_spec"]["index"])
    assert [trial["final_reward"] for trial in trials] == REWARDS
    check_what_the_model_saw(model, route, asked=2 * EPISODES)


def test_firehorse_goes_on_without_a_toolset_that_is_refused(
    server: ServedEnvironments, model: ScriptedModel, tmp_path: Path
) -> None:
    options = ["--model", "openrouter/scripted", "--max-tasks", "2", "--toolset", "claude-code"]
    assert firehorse(server, model, tmp_path, *options)["avg_reward"] == 1.0


def test_firehorse_on_another_environment_whose_tasks_cannot_be_listed(
    server: ServedEnvironments, model: ScriptedModel, tmp_path: Path
) -> None:
    options = ["--model", "openrouter/scripted", "--variant", "indexed", "--skip-tasks", "5000000", "--max-tasks", "2"]
    summary = firehorse(server, model, tmp_path, *options)

    assert summary["avg_reward"] == 1.0
    assert [trial["task_spec"] for trial in summary["trials"]] == [{"square": 5000000**2}, {"square": 5000001**2}]


def test_inspect(server: ServedEnvironments, model: ScriptedModel, tmp_path: Path) -> None:
    driver = str(HERE / "drivers" / "with_inspect.py")
    arguments = [driver, server.url, "probe", "train", str(EPISODES), str(tmp_path / "logs")]
    done = run(peer_python("inspect-openreward"), arguments, server, model, tmp_path)

    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["status"] == "success"
    assert [sample["score"] for sample in sorted(outcome["samples"], key=lambda sample: sample["id"])] == REWARDS
    assert all(sample["finished"] and sample["error"] is None for sample in outcome["samples"])
    assert outcome["metrics"]["mean"] == sum(REWARDS) / EPISODES
    check_what_the_model_saw(model, "/v1/chat/completions", asked=3 * EPISODES)
    assert f"data:image/bmp;base64,{PIXEL}" in json.dumps(model.requests), "the prompt's image"


def check_what_the_model_saw(model: ScriptedModel, route: str, asked: int) -> None:
    assert list(model.requests) == [route]
    bodies = model.requests[route]
    assert len(bodies) == asked
    for body in bodies:
        names = [(tool.get("function") or tool)["name"] for tool in body["tools"]]
        assert names == TOOLS
        submit = schema_of(body["tools"], "submit")
        assert submit["properties"]["answer"]["type"] == "string"
        assert submit["required"] == ["answer"]
    said = json.dumps(bodies)
    assert "Add the two numbers." in said and "  perhaps?" in said
