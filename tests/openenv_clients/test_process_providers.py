"""Servers as processes of this machine: started, waited for, and gone with all that they started."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ors.openenv import GenericEnvClient, UVProvider
from ors.openenv.providers import LocalProcessProvider
from ors.openenv.providers.base import free_port, health, wait_until_healthy

from .engine import PROJECT
from .processes import of_project, wait_until

pytestmark = pytest.mark.usefixtures("nothing_left")

# what is called as `uv run --isolated --project P -- uvicorn …`, and does what uv does after it has installed
UV = f"""#!{sys.executable}
import os, subprocess, sys
assert sys.argv[1:4] == ["run", "--isolated", "--project"], sys.argv
assert sys.argv[5:7] == ["--", "uvicorn"], sys.argv
print("uv has installed", sys.argv[4], flush=True)
sys.exit(subprocess.call([sys.executable, "-m", "uvicorn", *sys.argv[7:]]))
"""


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(UV)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def test_a_server_of_this_interpreter() -> None:
    provider = LocalProcessProvider(folder=PROJECT, env_vars={"WORD": "one"})
    with pytest.raises(RuntimeError, match="not started"):
        provider.base_url
    with provider:
        with GenericEnvClient(provider.base_url) as env:
            said = env.reset().observation
            assert said["word"] == "one"
            assert said["pid"] in of_project()
        assert "it begins" in provider.last_words()
        with pytest.raises(RuntimeError, match="has started a server already"):
            provider.start()
    assert provider.last_words() == ""
    port = free_port()
    assert provider.start(port=port, env_vars={"WORD": "two"}, log_level="error") == f"http://127.0.0.1:{port}"
    provider.wait_for_ready()
    with GenericEnvClient(provider=provider, base_url=provider.base_url) as env:
        assert env.reset().observation["word"] == "two"
    # who was given the provider has stopped it
    assert provider._process is None


def test_a_server_that_ends_or_is_never_ready_is_told_with_its_last_words() -> None:
    provider = LocalProcessProvider(folder=PROJECT)
    provider.start(env_vars={"ENDS_AT_ONCE": "1"})
    with pytest.raises(RuntimeError, match=r"ended before it was ready; it said last:\nit ends at once"):
        provider.wait_for_ready()
    url = provider.start(env_vars={"NEVER_WELL": "1"})
    wait_until(lambda: health(url, 5) == "it answers 404", "the server does not answer")
    with pytest.raises(TimeoutError, match=r"(?s)not ready within 0\.2 s \(it answers 404\); it said last:.*it begins"):
        provider.wait_for_ready(0.2)
    provider.stop()
    provider.stop()
    never = LocalProcessProvider(folder=PROJECT, env_vars={"NEVER_WELL": "1"}, context_timeout_s=0.2)
    with pytest.raises(TimeoutError), never:
        pass
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(RuntimeError, match=r"port \d+ of 127\.0\.0\.1 is in use"):
            provider.start(port=taken.getsockname()[1])


def test_what_answers_is_told_where_it_is_no_server_of_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TimeoutError, match=r"not ready within 0\.2 s \(timed out\)"):
            wait_until_healthy(url, 0.2)


def test_a_project_is_run_by_uv(uv: Path) -> None:
    launch = GenericEnvClient.from_env(
        "owner/game", use_docker=False, project_path=str(PROJECT), host="127.0.0.1", env_vars={"WORD": "uv"}
    )
    with launch as env:
        said = env.reset().observation
        assert said["word"] == "uv"
        # uv and the server that it has started
        assert len(of_project()) >= 2
    wait_until(lambda: said["pid"] not in of_project(), "what uv started is still running")


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    folder = tmp_path / "owner" / "game"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"], ["branch", "v2"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return folder


def test_7_44_the_source_of_an_environment_of_the_hub_is_cloned(
    uv: Path, origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # git is told that the hub is on this machine
    for name, value in (
        ("COUNT", "1"),
        ("KEY_0", f"url.file://{tmp_path}/.insteadOf"),
        ("VALUE_0", "https://huggingface.co/spaces/"),
    ):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    with GenericEnvClient.from_env("owner/game", use_docker=False, env_vars={"WORD": "cloned"}) as env:
        assert env.reset().observation["word"] == "cloned"
    with pytest.raises(RuntimeError, match="huggingface.co/spaces/owner/other cannot be cloned"):
        GenericEnvClient.from_env("owner/other", use_docker=False).client()


def test_a_project_that_is_cloned_is_removed_again(uv: Path, origin: Path, tmp_path: Path) -> None:
    for ref in ("", "@v2"):
        provider = UVProvider(f"git+file://{origin}{ref}")
        with provider:
            folder = Path(provider._folder or "")
            assert (folder / "server" / "app.py").exists()
            assert f"uv has installed {folder}" in provider.last_words()
            assert provider.base_url.startswith("http://127.0.0.1:")
        assert not folder.exists()
    missing = UVProvider(f"git+file://{tmp_path}/nowhere")
    with pytest.raises(RuntimeError, match="cannot be cloned: "):
        missing.start()
    assert missing._removing is None


def test_what_uv_needs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uv: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no project at"):
        UVProvider(tmp_path / "nothing").start()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="needs the program uv"):
        UVProvider(PROJECT).start()


def test_a_launch_by_uv_that_is_cancelled_leaves_no_process(uv: Path) -> None:
    async def play() -> None:
        launch = GenericEnvClient.from_env(
            "owner/game",
            use_docker=False,
            project_path=str(PROJECT),
            env_vars={"NEVER_WELL": "1"},
            wait_timeout=100.0,
        )
        before = of_project()
        starting = asyncio.ensure_future(launch._connected())
        await asyncio.to_thread(wait_until, lambda: len(of_project() - before) >= 2, "nothing was started")
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert of_project() <= before

    asyncio.run(asyncio.wait_for(play(), 60))


def test_a_server_nobody_has_stopped_is_stopped_at_the_end(tmp_path: Path) -> None:
    code = (
        "from ors.openenv.providers import LocalProcessProvider\n"
        f"provider = LocalProcessProvider(folder={str(PROJECT)!r})\n"
        "provider.start()\n"
        "provider.wait_for_ready()\n"
        "print(provider._process.pid)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert int(done.stdout) not in of_project()
