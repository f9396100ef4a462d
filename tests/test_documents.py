"""What the README and the documentation show is true: their code runs, and so do the commands against a real server."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

from ors import Environment, Server

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
LANGUAGES = {"python", "console", "json", "text", "http", "toml"}
SHOWN = "127.0.0.1:8080"
"""The address in the documents; the tests put the one of their server in its place."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(path.read_text("utf-8")) if kind == language]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The README's environment, served by the README's command."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "addition.py").write_text(blocks(README, "python")[0], "utf-8")
    command = re.findall(r"^\$ (ors serve .*)$", README.read_text("utf-8"), re.MULTILINE)
    assert command == ["ors serve addition.py"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("ors")
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [program, *command[0].split()[1:], "--port", str(port)], cwd=folder, stdout=log, stderr=log
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/health", server)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                code = server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                raise
    assert code == 0, (folder / "log").read_text()


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")


def run_python(path: Path, text: str) -> dict[str, Any]:
    """Run every Python block of a document, one after another; returns the names they define."""
    document = Document(text, str(path))
    for parser in (PythonCodeBlockParser(), SkipParser()):
        for region in parser(document):
            document.add(region)
    # a block that the parser does not see would be a block that nobody runs
    seen = sum("```python" in text[region.start : region.end] for _, region in document.regions)
    assert seen == len(blocks(path, "python"))
    document.namespace["__name__"] = "an_example"
    for example in document.examples():
        try:
            example.evaluate()
        except unittest.SkipTest:
            pass
    return document.namespace


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path, "python")], ids=name_of)
def test_python(path: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = path.read_text("utf-8")
    if SHOWN in "".join(blocks(path, "python")):
        text = text.replace(SHOWN, request.getfixturevalue("address"))
    run_python(path, text)


def test_the_environments_of_the_authors_page_play() -> None:
    page = ROOT / "docs" / "environments.md"
    names = run_python(page, page.read_text("utf-8"))
    classes = [cls for cls in names.values() if isinstance(cls, type) and issubclass(cls, Environment)]
    classes.remove(Environment)
    asyncio.run(play_all(classes))


async def play_all(classes: list[type[Environment]]) -> None:
    transport = httpx.ASGITransport(app=Server(classes).app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/list_environments")).json() == [cls.__name__.lower() for cls in classes]
        for cls in classes:
            await play(client, cls.__name__.lower())


async def play(client: httpx.AsyncClient, name: str) -> None:
    """Check what the page says of one of its environments."""
    session = {"X-Session-ID": f"of {name}"}
    task: dict[str, Any] = {"split": "asia" if name == "capitals" else "train", "index": 0}
    if name == "bench":
        task = {"task_spec": {"a": 1, "b": 2, "calculator": True}}
    created = await client.post("/create", json={"env_name": name, **task}, headers=session)
    assert created.status_code == 200, created.text
    prompt = (await client.get(f"/{name}/prompt", headers=session)).json()
    answer = (await client.get(f"/{name}/task_tools", headers=session)).json()
    tools = {tool["name"]: tool for tool in answer["tools"]}
    expected = {
        "addition": {"submit"},
        "capitals": {"submit"},
        "walker": {"look", "move", "rest", "submit"},
        "files": {"read", "submit"},
        "riddle": {"submit"},
        "bench": {"calculator", "submit"},
        "colours": {"submit", "zoom"},
        "judged": {"submit"},
    }
    assert set(tools) == expected[name]
    if name == "capitals":
        assert prompt[0]["text"] == "What is the capital of Japan?"
        assert (await client.post("/capitals/num_tasks", json={"split": "europe"})).json() == {"num_tasks": 2}
    elif name == "colours":
        assert [block["type"] for block in prompt] == ["text", "image"]
    elif name == "walker":
        assert tools["look"]["input_schema"] is None
        assert tools["rest"]["description"] == "Rest for a while."
        assert tools["rest"]["input_schema"]["properties"]["where"]["description"] == "A place that you know."
    elif name == "riddle":
        assert answer["terminal_tool"]["name"] == "answer"
    elif name == "files":
        body = {"name": "read", "input": {"name": "a/b"}}
        called = await client.post("/files/call", json=body, headers=session)
        assert "Tool 'read' failed: only plain file names, please" in called.text
    await client.post("/delete", headers=session)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_says_what_it_is(path: Path) -> None:
    for language, body in FENCE.findall(path.read_text("utf-8")):
        assert language in LANGUAGES, f"a block of {path.name} is {language or 'nothing'!r}"
        if language == "json":
            json.loads(body)


def test_an_episode_by_hand(address: str) -> None:
    """The README's commands print what the README says; `...` stands for anything."""
    played = next(body for body in blocks(README, "console") if "$ curl" in body)
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", played, re.MULTILINE)
    assert len(steps) >= 5
    for command, expected in steps:
        run = subprocess.run(
            ["bash", "-c", command.replace(SHOWN, address)], capture_output=True, text=True, check=True, timeout=30
        )
        printed = run.stdout.replace("\r\n", "\n").strip()
        pattern = re.escape(expected.strip()).replace(re.escape("..."), ".*")
        assert re.fullmatch(pattern, printed), f"{command}\n{printed}"
