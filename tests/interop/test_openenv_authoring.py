"""The same environments on the `openenv` package and on ours: what is answered is the same, frame by frame.

So it is for environments whose classes are the package's own. What differs on purpose is written down below.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ors.openenv
from openenv_authoring.frames import answered
from openenv_authoring.play import SHAPES, staged
from ors.adapters.openenv_environment import OpenEnvOffering

from .peers import ROOT, clean_environ, peer_python

pytestmark = pytest.mark.anyio

DRIVER = Path(__file__).parent / "drivers" / "openenv_transcripts.py"
FOLDER = ROOT / "tests" / "openenv_authoring"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def reset(**data: Any) -> dict[str, Any]:
    return {"type": "reset", "data": data}


def step(**data: Any) -> dict[str, Any]:
    return {"type": "step", "data": data}


STATE = {"type": "state"}
SCENARIOS: list[dict[str, Any]] = [
    {
        "module": "shapes",
        "kind": "columns",
        "frames": [
            STATE,
            reset(),
            *(step(column=column) for column in (2, 2, 2, "1", 1, 0, 0)),
            STATE,
            step(column="x"),
            step(),
            step(column=1, more=2),
            step(column=7),
            reset(seed=3, other=4),
            STATE,
        ],
    },
    {
        "module": "shapes",
        "kind": "ladder",
        "frames": [reset(), step(action="UP"), step(action="up"), step(action="UP"), step(action="DOWN"), STATE],
    },
    {
        "module": "shapes",
        "kind": "echo",
        "frames": [
            step(message="before any reset"),
            reset(seed=-1, episode_id="é" * 300, topic=None, unknown=[1]),
            *(step(message=message) for message in ("true", "three", "half", "none", "nan", "odd", "raise", "", "\n ")),
            step(message="with metadata", metadata={"a": 1}),
            step(message=1),
            STATE,
            reset(topic={"any": ["thing"]}),
        ],
    },
    {"module": "shapes", "kind": "coder", "frames": [reset(), step(code="1"), step(code="12345"), STATE]},
    {
        "module": "shapes",
        "kind": "judged",
        "frames": [reset(episode_id="j"), step(code="a"), step(code="b"), step(code="c"), STATE, reset(), STATE],
    },
    {
        "module": "tools_env",
        "kind": "counter",
        "frames": [
            step(type="list_tools"),
            reset(episode_id="t"),
            step(type="call_tool", tool_name="add", arguments={"by": 2}),
            step(tool_name="add", arguments={"by": 2, "twice": True}),
            step(tool_name="table"),
            step(tool_name="fail", arguments={"why": "broken"}),
            step(tool_name="none"),
            step(tool_name="add", arguments={"by": "many"}),
            step(tool_name="add", arguments=[1]),
            step(type="other"),
            STATE,
        ],
    },
    {
        "module": "tools_env",
        "kind": "any_action",
        "frames": [
            reset(),
            step(type="list_tools"),
            step(type="call_tool", tool_name="add", arguments={"by": 1}),
            step(),
        ],
    },
    {"module": "tools_env", "kind": "own_action", "frames": [reset(), step(text="hello"), step(txt="hello"), STATE]},
    {
        "module": "tools_env",
        "kind": "quoted",
        "frames": [reset(), step(type="call_tool", tool_name="add", arguments='{"by": 1}')],
    },
]
IDS = [scenario["kind"] for scenario in SCENARIOS]


def compared(transcript: list[Any]) -> list[Any]:
    """A transcript without what is chance, and without the input that theirs repeats to whoever sent it."""
    text = _UUID.sub("(an id)", json.dumps(transcript))
    frames: list[Any] = json.loads(text)
    for frame in frames:
        for error in frame["data"].get("errors", []):
            error.pop("input", None)
    return frames


def driven(whose: str, python: str | Path, path: list[str]) -> list[Any]:
    environ = clean_environ(PYTHONPATH=os.pathsep.join(path), FASTMCP_CHECK_FOR_UPDATES="off")
    done = subprocess.run(
        [str(python), str(DRIVER), whose, str(FOLDER)],
        input=json.dumps(SCENARIOS),
        capture_output=True,
        text=True,
        env=environ,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    transcripts: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return transcripts


@pytest.fixture(scope="module")
def theirs() -> list[Any]:
    """What the package's own server answers."""
    return driven("theirs", peer_python("openenv"), [])


@pytest.fixture(scope="module")
def their_classes_on_ours() -> list[Any]:
    """What ours answers for environments whose classes are the package's, which is found after all of our packages."""
    site = next((peer_python("openenv").parents[1] / "lib").glob("python*/site-packages"))
    return driven("ours", sys.executable, [str(ROOT / "tests"), *[path for path in sys.path if path], str(site)])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(len(SCENARIOS)), ids=IDS)
async def test_our_transcript_is_theirs(number: int, theirs: list[Any]) -> None:
    from openenv_authoring import tools_env

    scenario = SCENARIOS[number]
    envs = SHAPES if scenario["module"] == "shapes" else tools_env.load(ors.openenv)
    async with staged(OpenEnvOffering(*envs.kinds[scenario["kind"]])) as stage:
        session = await stage.open()
        ours = [await answered(session, frame) for frame in scenario["frames"]]
    assert compared(ours) == compared(theirs[number])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(len(SCENARIOS)), ids=IDS)
def test_environments_of_their_classes_answer_the_same(
    number: int, theirs: list[Any], their_classes_on_ours: list[Any]
) -> None:
    assert compared(their_classes_on_ours[number]) == compared(theirs[number])


LISTED = """
import importlib, inspect, json, logging
logging.disable()
modules = '''
    openenv openenv.auto openenv.core openenv.core.client_types openenv.core.containers.runtime openenv.core.env_client
    openenv.core.env_server openenv.core.env_server.base_transforms openenv.core.env_server.exceptions
    openenv.core.env_server.http_server openenv.core.env_server.interfaces openenv.core.env_server.mcp_environment
    openenv.core.env_server.mcp_types openenv.core.env_server.route_config openenv.core.env_server.serialization
    openenv.core.env_server.types openenv.core.env_server.web_interface openenv.core.generic_client
    openenv.core.harness openenv.core.llm_client openenv.core.mcp_client openenv.core.rubrics openenv.core.rubrics.base
    openenv.core.rubrics.containers openenv.core.rubrics.llm_judge openenv.core.rubrics.trajectory
    openenv.core.sync_client openenv.core.tools openenv.core.utils
'''
names = {}
for path in modules.split():
    module = importlib.import_module(path)
    own = [name for name, value in vars(module).items()
           if not name.startswith("_") and getattr(value, "__module__", None) == path and callable(value)]
    names[path] = sorted({*own, *getattr(module, "__all__", [])} - {"cli", "core"})
print(json.dumps(names))
"""
LOADED = """
import importlib, json, sys
missing = {}
for path, names in json.load(sys.stdin).items():
    module = importlib.import_module(path)
    missing[path] = [name for name in names if name not in dir(module)]
print(json.dumps({path: names for path, names in missing.items() if names}))
"""


@pytest.mark.timeout(600)
def test_what_can_be_imported_from_the_package_can_be_imported_from_ours() -> None:
    named = subprocess.run(
        [str(peer_python("openenv")), "-c", LISTED], capture_output=True, text=True, env=clean_environ(), timeout=110
    )
    assert named.returncode == 0, named.stderr[-2000:]
    compat = str(ROOT / "compat" / "openenv" / "src")
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED],
        input=named.stdout.splitlines()[-1],
        capture_output=True,
        text=True,
        env=clean_environ(PYTHONPATH=compat),
        timeout=110,
    )
    assert loaded.returncode == 0, loaded.stderr[-2000:]
    assert json.loads(loaded.stdout) == {}
