"""The guide of the Task API: its code as it stands, its `curl` lines, its tables."""

from __future__ import annotations

import importlib
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from served import Served

ROOT = Path(__file__).resolve().parents[3]
CURL = """
curl http://localhost:8000/list_environments
curl http://localhost:8000/latex_ocr_env/splits
curl -X POST http://localhost:8000/latex_ocr_env/num_tasks \\
  -H 'Content-Type: application/json' -d '{"split": "test"}'
curl -X POST http://localhost:8000/latex_ocr_env/task_range \\
  -H 'Content-Type: application/json' -d '{"split": "test", "start": 0, "stop": 4}'
"""
STUBS = [{"id": f"test-{index}", "index": index, "split": "test"} for index in range(7)]


@pytest.fixture(scope="module")
def guide() -> Iterator[Any]:
    """The module of the guide, with ours under OpenEnv's import paths."""
    path = str(ROOT / "compat" / "openenv" / "src")
    sys.path.insert(0, path)
    before = set(sys.modules)
    try:
        yield importlib.import_module("faces.openenv.guide")
    finally:
        sys.path.remove(path)
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("openenv", "openenv_core") or name == "faces.openenv.guide":
                del sys.modules[name]


@pytest.fixture(scope="module")
def served_guide(guide: Any) -> Iterator[Served]:
    running = Served([guide.app])
    yield running
    running.stop()


def test_the_curl_lines_run_as_they_stand(served_guide: Served) -> None:
    answers = []
    for line in CURL.replace("\\\n", " ").strip().splitlines():
        words = shlex.split(line.replace("http://localhost:8000", served_guide.url))
        done = subprocess.run(
            [*words, "--silent", "--fail", "--noproxy", "*"], capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 0, (line, done.stderr)
        answers.append(json.loads(done.stdout))
    assert answers == [
        ["latex_ocr_env"],
        [{"name": "train", "type": "train"}, {"name": "test", "type": "test"}],
        {"num_tasks": 7},
        {"tasks": STUBS[:4]},
    ]


def test_its_table_of_routes(served_guide: Served) -> None:
    client = served_guide.client
    listed = client.post("/latex_ocr_env/tasks", json={"split": "test"}).json()
    assert listed == {"tasks": [{"id": f"test-{i}", "index": i} for i in range(7)], "env_name": "latex_ocr_env"}
    assert client.post("/latex_ocr_env/task", json={"split": "test", "index": 6}).json() == {"task": STUBS[6]}
    for start, stop, expected in ((None, None, STUBS), (5, None, STUBS[5:]), (0, 32, STUBS), (3, 3, [])):
        body = {"split": "test", "start": start, "stop": stop}
        assert client.post("/latex_ocr_env/task_range", json=body).json() == {"tasks": expected}
    tags = {
        tuple(operation["tags"])
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for operation in methods.values()
        if path.startswith("/{env_name}/") and path.rpartition("/")[2] in ("splits", "tasks", "num_tasks", "task_range")
    }
    assert tags == {("Task API",)}


def test_its_table_of_errors(served_guide: Served) -> None:
    client = served_guide.client
    assert client.get("/another/splits").status_code == 404
    assert client.get("/Latex_OCR_Env/splits").status_code == 200
    for index in (7, -1):
        assert client.post("/latex_ocr_env/task", json={"split": "test", "index": index}).status_code == 400


def test_a_task_is_chosen_by_reset(served_guide: Served) -> None:
    client = served_guide.client
    chosen = client.post("/reset", json={"split": "train", "index": 4}).json()
    assert chosen["observation"]["image_base64"] == "train picture 4"
    assert client.post("/reset", json={"seed": 9}).json()["observation"]["image_base64"] == "test picture 2"
    failed = client.post("/reset", json={"split": "tset"})
    assert failed.status_code == 500 and "unknown split 'tset'" in failed.json()["detail"]


def test_its_client_and_its_loop(served_guide: Served, guide: Any) -> None:
    def model(image: str) -> str:
        number = int(image.split()[-1])
        return f"x^{number}" if number % 2 else "y"

    assert guide.evaluate(served_guide.url, model) == [(index, float(index % 2)) for index in range(7)]
    with guide.LatexOCREnv(served_guide.url).sync() as env:
        assert env.list_splits() == ["train", "test"]
