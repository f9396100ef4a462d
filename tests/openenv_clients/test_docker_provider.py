"""Docker's engine is asked as its HTTP API has it; what was started is stopped, whatever happens."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import subprocess
import sys

import pytest

from ors.openenv import DockerSwarmProvider, GenericEnvClient, KubernetesProvider, LocalDockerProvider
from ors.openenv.providers.base import free_port, health

from .engine import Engine
from .processes import wait_until

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_a_container_is_started_played_in_and_removed(engine: Engine) -> None:
    port = free_port()
    with GenericEnvClient.from_docker_image(
        "echo:1", env_vars={"WORD": "hello"}, port=port, message_timeout_s=7
    ) as env:
        assert env.base_url == f"http://127.0.0.1:{port}"
        assert env.reset().observation["word"] == "hello"
        assert env.step({}).observation["steps"] == 1
        assert env._options["message_timeout_s"] == 7
        (made,) = engine.containers.values()
        assert made.config["HostConfig"]["PortBindings"] == {
            "8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port)}]
        }
    assert engine.containers == {}
    assert engine.asked[-1].startswith("DELETE /containers/")


def test_what_else_the_engine_takes_is_passed_on(engine: Engine) -> None:
    provider = LocalDockerProvider()
    with pytest.raises(ConnectionError, match="no Docker engine answers at unix:///nowhere"):
        LocalDockerProvider(host="unix:///nowhere").start_container("echo:1")
    with pytest.raises(ValueError, match="neither unix:///path nor tcp://host:port"):
        LocalDockerProvider(host="ssh://somewhere").start_container("echo:1")
    url = provider.start_container("echo:1", Cmd=["serve"], HostConfig={"Memory": 1 << 30})
    (made,) = engine.containers.values()
    assert (made.config["Cmd"], made.config["HostConfig"]["Memory"]) == (["serve"], 1 << 30)
    assert list(made.config["HostConfig"]["PortBindings"]) == ["8000/tcp"]
    provider.wait_for_ready(url)
    with pytest.raises(RuntimeError, match="has started a container already"):
        provider.start_container("echo:1")
    provider.stop_container()
    provider.stop_container()
    assert [line for line in engine.asked if line.startswith("DELETE")] == [f"DELETE /containers/{1:064x}"]


def test_7_46_the_port_is_8000_or_the_one_that_is_said(engine: Engine) -> None:
    with GenericEnvClient.from_docker_image("echo:1", provider=LocalDockerProvider(container_port=7860)) as env:
        (made,) = engine.containers.values()
        assert made.config["ExposedPorts"] == {"7860/tcp": {}}
        assert env.reset().observation["steps"] == 0


def test_an_image_that_is_not_there_is_pulled(engine: Engine) -> None:
    engine.registry.add("registry.hf.space/owner-game:latest")
    with GenericEnvClient.from_env("owner/game") as env:
        assert env.reset().observation["steps"] == 0
    assert "POST /images/create" in engine.asked
    with pytest.raises(RuntimeError, match="'other:2' is not there and cannot be pulled: pull access denied"):
        GenericEnvClient.from_docker_image("other:2").client()
    # without a tag the newest is meant, never all of them
    with pytest.raises(RuntimeError, match="pull access denied for other:latest"):
        GenericEnvClient.from_docker_image("other").client()
    for wrong in ("game", "a/b/c", "/game"):
        with pytest.raises(ValueError, match="write owner/name"):
            GenericEnvClient.from_env(wrong)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("POST /containers/create", "no container could be made of 'echo:1': the engine is out of order"),
        ("POST /containers/.*/start", "did not start: the engine is out of order"),
        ("GET /containers/.*/json", "nothing is known of the container"),
    ],
)
def test_what_the_engine_refuses_is_told_and_nothing_is_left(engine: Engine, broken: str, words: str) -> None:
    engine.broken.add(broken)
    with pytest.raises(RuntimeError, match=words):
        GenericEnvClient.from_docker_image("echo:1").client()
    assert engine.containers == {}


def test_7_8_a_server_that_is_never_ready_is_stopped_with_its_last_words(engine: Engine) -> None:
    provider = LocalDockerProvider()
    url = provider.start_container("echo:1", env_vars={"NEVER_WELL": "1"})
    wait_until(lambda: health(url, 5) == "it answers 404", "the server does not answer")
    with pytest.raises(TimeoutError, match=r"not ready within 0\.2 s \(it answers 404\); it said last:\nit begins"):
        provider.wait_for_ready(url, timeout_s=0.2)
    provider.stop_container()
    never = GenericEnvClient.from_docker_image("echo:1", env_vars={"NEVER_WELL": "1"}, wait_timeout=0.3)
    with pytest.raises(TimeoutError, match=r"not ready within 0\.3 s"):
        never.client()
    assert engine.containers == {}
    # one that has ended is not waited for
    ended = GenericEnvClient.from_docker_image("echo:1", env_vars={"ENDS_AT_ONCE": "1"}, wait_timeout=60.0)
    with pytest.raises(RuntimeError, match="ended before it was ready; it said last:\nit ends at once"):
        ended.sync()
    assert engine.containers == {}


def test_a_launch_that_is_cancelled_stops_what_it_started(engine: Engine) -> None:
    async def play() -> None:
        launch = GenericEnvClient.from_docker_image("echo:1", env_vars={"NEVER_WELL": "1"}, wait_timeout=100.0)
        starting = asyncio.ensure_future(launch._connected())
        await asyncio.to_thread(engine.created.wait)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        # before anybody hears that it was cancelled
        assert engine.containers == {}
        with pytest.raises(RuntimeError, match="given up"):
            await launch

    asyncio.run(asyncio.wait_for(play(), 30))


def test_a_client_that_cannot_be_made_or_connected_leaves_no_container(engine: Engine) -> None:
    with pytest.raises(ValueError, match="Invalid mode"):
        GenericEnvClient.from_docker_image("echo:1", mode="neither").client()
    assert engine.containers == {}

    class Unreachable(GenericEnvClient):
        def __init__(self, base_url: str, **options: object) -> None:
            super().__init__("http://127.0.0.1:9", **options)  # type: ignore[arg-type]

    async def play() -> None:
        with pytest.raises(ConnectionError):
            await Unreachable.from_docker_image("echo:1")
        assert engine.containers == {}
        with pytest.raises(ConnectionError):
            async with Unreachable.from_docker_image("echo:1"):
                pass

    asyncio.run(play())
    assert engine.containers == {}
    with pytest.raises(ConnectionError):
        with Unreachable.from_docker_image("echo:1"):
            pass
    assert engine.containers == {}


def test_7_13_every_way_to_a_client_of_a_container(engine: Engine) -> None:
    async def awaited() -> None:
        env = await GenericEnvClient.from_docker_image("echo:1")
        assert (await env.reset()).observation["steps"] == 0
        assert env.base_url.startswith("http://127.0.0.1:")
        await env.close()
        async with GenericEnvClient.from_docker_image("echo:1") as other:
            assert (await other.step({})).observation["steps"] == 1

    asyncio.run(awaited())
    assert engine.containers == {}
    with GenericEnvClient.from_docker_image("echo:1").sync() as env:
        assert env.base_url.startswith("http://127.0.0.1:")
        assert env.step({}).observation["steps"] == 1
        assert env.new_session().step({}).observation["steps"] == 1
    assert engine.containers == {}
    launch = GenericEnvClient.from_docker_image("echo:1")
    assert "not started yet" in repr(launch)
    assert not hasattr(launch, "_repr_html_")
    assert engine.containers == {}
    assert launch.reset().observation["steps"] == 0
    assert "launched" in repr(launch)
    launch.close()
    assert engine.containers == {}


def _close(env: GenericEnvClient) -> None:
    env.close()


def test_a_forked_child_does_not_stop_its_parents_server(engine: Engine) -> None:
    with GenericEnvClient.from_docker_image("echo:1") as env:
        env.reset()
        child = multiprocessing.get_context("fork").Process(target=_close, args=(env,))
        child.start()
        child.join(30)
        assert child.exitcode == 0
        assert len(engine.containers) == 1
        assert env.step({}).observation["steps"] == 1
    assert engine.containers == {}


def test_a_container_that_cannot_be_removed_is_tried_again(engine: Engine) -> None:
    provider = LocalDockerProvider()
    provider.start_container("echo:1")
    engine.broken.add("DELETE .*")
    with pytest.raises(RuntimeError, match="could not be removed: the engine is out of order"):
        provider.stop_container()
    engine.broken.clear()
    provider.stop_container()
    assert engine.containers == {}


def test_a_container_is_removed_when_nobody_has_its_client_any_more(engine: Engine) -> None:
    launch = GenericEnvClient.from_docker_image("echo:1")
    assert launch.reset().observation["steps"] == 0
    del launch
    gc.collect()
    wait_until(lambda: not engine.containers, "the container is still there")
    code = (
        "from ors.openenv import GenericEnvClient\n"
        "env = GenericEnvClient.from_docker_image('echo:1').client()\n"
        "print(env.reset().observation['steps'])\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert engine.containers == {}


def test_a_service_of_a_swarm(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match=r"in no swarm \(it says 'inactive'\)"):
        DockerSwarmProvider(auto_init_swarm=False)
    provider = DockerSwarmProvider(overlay_network="rollouts")
    assert (engine.swarm, engine.networks) == ("active", {"rollouts"})
    options = {"replicas": 3, "cpu_limit": 0.5, "memory_limit": "512m", "constraints": ["node.role==worker"]}
    launch = GenericEnvClient.from_docker_image(
        "org/echo:1", provider=provider, env_vars={"WORD": "swarm"}, command="serve --fast", **options
    )
    with launch as env:
        assert env.reset().observation["word"] == "swarm"
        (made,) = engine.services.values()
        template = made.config["TaskTemplate"]
        assert made.config["Name"].startswith("echo-")
        assert made.config["Mode"] == {"Replicated": {"Replicas": 3}}
        assert template["Resources"]["Limits"] == {"NanoCPUs": 500_000_000, "MemoryBytes": 512 << 20}
        assert template["Placement"] == {"Constraints": ["node.role==worker"]}
        assert template["Networks"] == [{"Target": "rollouts"}]
        assert template["ContainerSpec"]["Args"] == ["serve", "--fast"]
        assert "it begins" in provider.last_words()
    assert engine.services == {}
    with pytest.raises(ValueError, match="memory_limit is no number of bytes: 'much'"):
        provider.start_container("echo:1", memory_limit="much")
    engine.broken.add("GET /services/.*")
    with pytest.raises(RuntimeError, match="nothing is known of the service"):
        provider.start_container("echo:1")
    assert engine.services == {}


def test_there_is_no_provider_for_kubernetes() -> None:
    with pytest.raises(NotImplementedError, match="give clients its address"):
        KubernetesProvider()
