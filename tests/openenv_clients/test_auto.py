"""Environments by name: what is installed is found, what is not is installed when its user agrees, servers start."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ors.openenv import AutoAction, AutoEnv, GenericAction, GenericEnvClient
from ors.openenv.clients import EnvironmentUnavailable, hub
from ors.openenv.clients.addresses import is_local
from ors.openenv.clients.installed import key_of
from ors.openenv.providers import LocalProcessProvider
from ors.openenv.providers.base import free_port

from .engine import PROJECT, Engine
from .packages import install
from .processes import MARK

YAML = "spec_version: 1\nname: {}\nversion: 1.0\ndescription: {}\n"

# what `uv pip install --python P git+…` comes to: the package is in the folder of packages afterwards
UV = f"""#!{sys.executable}
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from tests.openenv_clients.packages import install
assert sys.argv[1:5] == ["pip", "install", "--python", {sys.executable!r}], sys.argv
(source,) = sys.argv[5:]
owner, name = source.removeprefix("git+https://huggingface.co/spaces/").split("/")
if owner == "nobody":
    sys.exit("there is no such repository")
if owner != "empty":
    install(Path(os.environ["PACKAGES"]), f"openenv-{{name}}")
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(folder) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.fixture
def uv(tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(UV)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PACKAGES", str(packages))
    monkeypatch.delenv(hub.TRUST, raising=False)
    return program


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LocalProcessProvider(folder=PROJECT, env_vars={"WORD": "running", MARK[0]: "0"}) as provider:
        yield provider.base_url


def test_installed_environments_are_found_without_importing_them(
    packages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    AutoEnv.list_environments()
    assert "None are installed" in capsys.readouterr().out
    install(packages, "openenv-parrot-env", manifest=YAML.format("parrot_env", "It says it again."))
    install(packages, "openenv-lone_wolf")
    install(packages, "openenv-core")
    info = AutoEnv.get_env_info("parrot")
    assert info == {
        "env_key": "parrot",
        "name": "parrot_env",
        "package": "openenv-parrot-env",
        "version": "1.2.0",
        "description": "It says it again.",
        "env_class": "ParrotEnv",
        "action_class": "ParrotAction",
        "observation_class": "ParrotObservation",
        "module": "parrot_env.client",
        "default_image": "parrot-env:latest",
        "spec_version": 1,
    }
    assert AutoEnv.get_env_info("lone-wolf-env")["env_class"] == "LoneWolfEnv"
    assert AutoAction.get_action_info("Parrot-Env")["action_class"] == "ParrotAction"
    AutoEnv.list_environments()
    AutoAction.list_actions()
    printed = capsys.readouterr().out
    assert printed.count("Total: 2") == 2
    assert "parrot         : It says it again. (v1.2.0)" in printed
    assert "core" not in printed
    assert not {"parrot_env", "lone_wolf"} & set(sys.modules)
    for spelling in ("parrot", "parrot-env", "parrot_env"):
        assert AutoEnv.get_env_class(spelling).__name__ == "ParrotEnv"
        assert AutoAction.from_env(spelling)(word="x").word == "x"
    assert AutoAction.from_hub("parrot") is AutoAction.from_env("parrot")


def test_what_is_not_installed_is_told_with_what_is(packages: Path) -> None:
    with pytest.raises(ValueError, match="no environments of OpenEnv are installed"):
        AutoEnv.from_env("parrot")
    install(packages, "openenv-parrot_env")
    install(packages, "openenv-chess_env")
    with pytest.raises(
        ValueError, match=r"Unknown environment 'parot'\. Did you mean parrot\? Available environments: chess, parrot"
    ):
        AutoEnv.from_env("parot")
    with pytest.raises(ValueError, match="Unknown environment 'x'"):
        AutoAction.from_env("x")
    for kind in (AutoEnv, AutoAction):
        with pytest.raises(TypeError, match=r"use Auto\w+\.from_env"):
            kind()
    assert [key_of(name) for name in ("echo", "echo-env", "Echo_Env", "env_of_mine")] == [
        "echo",
        "echo",
        "echo",
        "env_of_mine",
    ]


def test_classes_that_are_not_called_as_custom_has_it(packages: Path) -> None:
    install(packages, "openenv-repl_env", client="REPLEnv", action="REPLAction")
    assert AutoEnv.get_env_class("repl").__name__ == "REPLEnv"
    assert AutoAction.from_env("repl").__name__ == "REPLAction"
    install(
        packages,
        "openenv-coding",
        client="Coder",
        action="CodeAction",
        manifest="name: coding_env\naction: CodeAction\n",
    )
    assert AutoEnv.get_env_class("coding").__name__ == "Coder"
    assert AutoAction.from_env("coding").__name__ == "CodeAction"
    # a package that does not hold the module that its name promises
    install(packages, "openenv-two", module="deux")
    assert AutoEnv.get_env_info("deux")["module"] == "deux.client"
    # what is unfit is left out with a word in the log, and takes nothing else with it
    install(packages, "openenv-odd", manifest="- no mapping\n")
    assert AutoEnv.get_env_info("odd")["description"] == "odd_env environment"
    (packages / "odd" / "client.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(ImportError, match="--force-reinstall openenv-odd"):
        AutoEnv.get_env_class("odd")
    install(packages, "openenv-bare")
    (packages / "bare" / "client.py").write_text("from ors.openenv import EnvClient\n")
    with pytest.raises(ImportError, match=r"no class BareEnv in bare\.client \(classes of the kind Env: none\)"):
        AutoEnv.get_env_class("bare")


def test_a_server_that_is_there_is_used(packages: Path, url: str) -> None:
    install(packages, "openenv-parrot_env")
    with AutoEnv.from_env("parrot", base_url=url, message_timeout_s=7.0) as env:
        assert type(env).__name__ == "ParrotEnv"
        assert env.reset().observation.word == "running"
        assert env.step(AutoAction.from_env("parrot")(word="x")).observation.steps == 1
    with AutoEnv.from_hub("whatever", base_url=url, skip_install=True) as generic:
        assert type(generic) is GenericEnvClient
        assert generic.step(AutoAction.from_env("whatever", skip_install=True)(word="x")).observation["steps"] == 1
    assert AutoAction.from_env("whatever", skip_install=True) is GenericAction


@pytest.mark.usefixtures("nothing_left")
def test_a_server_of_this_machine_that_is_not_there_is_started(packages: Path, engine: Engine) -> None:
    install(packages, "openenv-parrot_env")
    engine.images |= {"parrot-env:latest", "other:3"}
    nowhere = f"http://localhost:{free_port()}"
    with AutoEnv.from_env("parrot", env_vars={"WORD": "started"}) as env:
        assert env.reset().observation.word == "started"
    with AutoEnv.from_env("parrot", base_url=nowhere, docker_image="other:3") as env:
        assert env.base_url != nowhere
        assert env.reset().observation.steps == 0
    with AutoEnv.from_env("whatever", docker_image="other:3", skip_install=True) as generic:
        assert generic.reset().observation["steps"] == 0
    assert engine.containers == {}
    with pytest.raises(ValueError, match=r"the image 'parrot-env:latest' of 'parrot' cannot be started: .*not ready"):
        AutoEnv.from_env("parrot", env_vars={"NEVER_WELL": "1"}, wait_timeout=0.3)
    assert engine.containers == {}
    with pytest.raises(ValueError, match="needs a base_url, or a docker_image"):
        AutoEnv.from_env("whatever", skip_install=True)
    with pytest.raises(EnvironmentUnavailable):
        AutoEnv.from_env("whatever", base_url=nowhere, skip_install=True)


def test_a_server_elsewhere_is_never_replaced_by_one_of_this_machine(packages: Path, engine: Engine) -> None:
    install(packages, "openenv-parrot_env")
    engine.images.add("parrot-env:latest")
    for elsewhere in ("http://localhost.example.invalid:8000", "http://127.0.0.1.example.invalid", "example.invalid"):
        for kind in (ConnectionError, ValueError):
            with pytest.raises(kind, match=f"no server of 'parrot' answers at {elsewhere}"):
                AutoEnv.from_env("parrot", base_url=elsewhere)
    assert engine.asked == []


def test_7_43_only_the_host_says_whether_a_server_is_of_this_machine() -> None:
    here = ("http://localhost:8000", "ws://127.0.0.1:9/ws", "[::1]:8000", "http://0.0.0.0:8000", "127.1.2.3")
    elsewhere = ("http://localhost.evil.com", "http://127.0.0.1.evil.com", "http://evil.com/localhost")
    assert all(map(is_local, here))
    assert not any(map(is_local, (*elsewhere, "http://evil.com?at=127.0.0.1", "http://localhost@evil.com")))


def test_no_docker_is_told(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(packages, "openenv-parrot_env")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    with pytest.raises(EnvironmentUnavailable, match="no Docker engine answers at unix:///nowhere"):
        AutoEnv.from_env("parrot")


@pytest.mark.parametrize(
    "name", ["owner/a_game", "https://huggingface.co/owner/a_game", "https://huggingface.co/spaces/owner/a_game/"]
)
def test_an_environment_of_the_hub_is_installed_when_its_user_agrees(
    name: str, packages: Path, uv: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="nobody has agreed to running its code here"):
        AutoEnv.from_env(name, base_url=url)
    assert not list(packages.iterdir())
    with AutoEnv.from_env(name, base_url=url, trust_remote_code=True) as env:
        assert env.reset().observation.word == "running"
        assert type(env).__name__ == "AGameEnv"
    # once is enough
    assert AutoAction.from_env(name).__name__ == "AGameAction"
    monkeypatch.setenv(hub.TRUST, "yes")
    assert AutoAction.from_env("owner/b_game").__name__ == "BGameAction"


def test_what_cannot_be_installed_is_told(uv: Path) -> None:
    with pytest.raises(ValueError, match=r"(?s)nobody/game cannot be installed by .*there is no such repository"):
        AutoEnv.from_env("nobody/game", trust_remote_code=True)
    with pytest.raises(ValueError, match="no environment of OpenEnv is there that was not before"):
        AutoEnv.from_env("empty/game", trust_remote_code=True)
    for wrong in ("https://huggingface.co.evil.com/a/b", "https://evil.com/huggingface.co/b"):
        with pytest.raises(ValueError, match="is no address of the hub"):
            AutoEnv.from_env(wrong, trust_remote_code=True)
    with pytest.raises(ValueError, match="write owner/name"):
        AutoEnv.from_env("a/b/c", trust_remote_code=True)


def test_asked_at_a_terminal_a_user_may_agree_or_not(
    uv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for typed, agrees in (("y\n", True), ("no\n", False), ("", False)):
        user, program = os.openpty()
        with open(program, encoding="utf-8") as terminal:
            os.write(user, typed.encode() or b"\x04")
            monkeypatch.setattr(sys, "stdin", terminal)
            refused = contextlib.nullcontext() if agrees else pytest.raises(ValueError, match="nobody has agreed")
            with refused:
                AutoAction.from_env(f"owner/game{len(typed)}")
        os.close(user)
        assert "git+https://huggingface.co/spaces/owner/game" in capsys.readouterr().out


@pytest.mark.usefixtures("nothing_left")
def test_an_environment_that_runs_at_the_hub_is_used_there_and_else_started(
    packages: Path, engine: Engine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(packages, "openenv-parrot_env")
    assert hub.space_url("Owner/a_b.C") == "https://owner-a-b-c.hf.space"
    monkeypatch.setattr(hub, "space_url", lambda repo_id: url)
    with AutoEnv.from_env("owner/parrot") as env:
        assert (type(env).__name__, env.base_url) == ("ParrotEnv", url)
    with AutoEnv.from_env("owner/other", skip_install=True) as generic:
        assert (type(generic), generic.base_url) == (GenericEnvClient, url)
    assert engine.asked == []
    nowhere = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setattr(hub, "space_url", lambda repo_id: nowhere)
    engine.registry |= {"registry.hf.space/owner-parrot:latest", "registry.hf.space/owner-other:latest"}
    with AutoEnv.from_env("owner/parrot") as env:
        assert env.reset().observation.steps == 0
    with AutoEnv.from_env("owner/other", skip_install=True) as generic:
        assert generic.reset().observation["steps"] == 0
    assert engine.containers == {}
