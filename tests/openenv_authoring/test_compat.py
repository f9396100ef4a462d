"""The import paths of the `openenv` package, over ours."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "compat" / "openenv" / "src"


def run(code: str) -> str:
    """Run code where the import paths are."""
    command = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{textwrap.dedent(code)}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_names_are_ours_under_the_other_paths() -> None:
    run("""
        import ors.openenv as ours
        from openenv.core import Action, Environment, EnvClient
        from openenv.core.env_server import Environment as E, MCPEnvironment, Observation, State, CallToolAction, Tool
        from openenv.core.env_server.base_transforms import CompositeTransform
        from openenv.core.env_server.exceptions import ConcurrencyConfigurationError
        from openenv.core.env_server.interfaces import Action as A, Environment as I, Message, ModelTokenizer, Transform
        from openenv.core.env_server.mcp_environment import MCPEnvironment as M
        from openenv.core.env_server.mcp_types import CallToolAction as C, RESERVED_TOOL_NAMES
        from openenv.core.env_server.serialization import deserialize_action, serialize_observation
        from openenv.core.env_server.types import CodeExecResult, EnvironmentMetadata, Observation as O, State as S
        from openenv.core.env_server.web_interface import load_environment_metadata
        from openenv.core.env_client import EnvClient as Client, StepResult
        from openenv.core.client_types import StepResult as R
        from openenv.core.generic_client import GenericAction, GenericEnvClient
        from openenv import AutoAction, AutoEnv
        from openenv.auto import AutoEnv as ByName
        from openenv.auto.auto_action import AutoAction as ActionByName
        from openenv.core.containers.runtime import ContainerProvider, LocalProcessProvider
        from openenv.core.containers.runtime.providers import DockerSwarmProvider, LocalDockerProvider, RuntimeProvider
        from openenv.core.containers.runtime.uv_provider import UVProvider
        from openenv.core.mcp_client import GenericMCPObservation, MCPClientBase, MCPToolClient
        from openenv.core.rubrics import Rubric, LLMJudge
        from openenv.core.rubrics.base import Rubric as B
        from openenv.core.rubrics.trajectory import ExponentialDiscountingTrajectoryRubric
        from openenv.core.sync_client import SyncEnvClient
        from openenv.core.utils import run_async_safely

        assert E is I is Environment is ours.Environment and M is MCPEnvironment is ours.MCPEnvironment
        assert A is Action is ours.Action and O is Observation is ours.Observation and S is State is ours.State
        assert C is CallToolAction is ours.CallToolAction and B is Rubric is ours.Rubric
        assert Client is EnvClient is ours.EnvClient and R is StepResult is ours.StepResult
        assert ByName is AutoEnv is ours.AutoEnv and ActionByName is AutoAction is ours.AutoAction
        assert (LocalDockerProvider, UVProvider) == (ours.LocalDockerProvider, ours.UVProvider)
        assert load_environment_metadata is ours.load_environment_metadata
    """)


def test_environments_import_little() -> None:
    loaded = run("""
        from openenv.core.env_server import Environment, Action, Observation, State
        from openenv.core.env_server.types import Action
        heavy = {"fastmcp", "gradio", "fastapi", "starlette", "uvicorn", "aiohttp", "requests", "openai", "yaml"}
        print(sorted(heavy & set(sys.modules)))
    """)
    assert loaded == "[]"


def test_what_is_not_there_says_so_when_it_is_used() -> None:
    run("""
        from openenv.core.harness import HarnessEnvironment, ResourceSessionFactory
        from openenv.core.env_server.web_interface import create_web_interface_app
        from openenv.core.tools import PyExecutor

        class Mine(ResourceSessionFactory):
            pass

        for name in (create_web_interface_app, Mine, PyExecutor):
            try:
                name("anything", key=1)
            except NotImplementedError as exc:
                assert "is not part of ORS Kit yet" in str(exc), exc
            else:
                raise AssertionError(name)
        try:
            from openenv.core.harness import Nothing
        except ImportError:
            pass
        else:
            raise AssertionError
    """)


def test_the_old_name_works_and_warns() -> None:
    run("""
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            from openenv_core.env_server import Environment
            from openenv_core.env_server.interfaces import Environment as Same
            from openenv_core import Action
        import openenv.core
        assert Environment is Same is openenv.core.Environment and Action is openenv.core.Action
        assert [str(one.category.__name__) for one in caught] == ["DeprecationWarning"]
    """)


@pytest.mark.parametrize("name", ["openenv", "openenv.core", "openenv.core.env_server", "openenv.core.harness"])
def test_names_are_listed(name: str) -> None:
    run(f"""
        import importlib
        module = importlib.import_module({name!r})
        assert {{"__name__", *module.__all__}} <= set(dir(module)), sorted(set(module.__all__) - set(dir(module)))
    """)
