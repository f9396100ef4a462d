"""What only a host in another process has: its process can die, fail to start, outlive, print, and keep secrets."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from ors import Environment
from ors.core.failures import Failure
from ors.core.ports import Document, Op, Opened, Start, TaskQuery
from ors.core.secrets import Secrets
from ors.errors import AuthoringError, ORSError
from ors.hosts.remote import RemoteHost
from served import Served, until, wait_until

from .conftest import TRAINER, Player
from .environments import Workshop, broken, offerings

pytestmark = pytest.mark.anyio

Spawn = Callable[..., Awaitable[RemoteHost]]
ROOT = Path(__file__).resolve().parents[2]


def kind(outcome: Any) -> str:
    assert isinstance(outcome, Failure), outcome
    return outcome.kind


def text(outcome: Any) -> str:
    return str(json.loads(outcome.body)["blocks"][0]["text"])


async def pid_of(player: Player) -> int:
    await player.open()
    return int(text(await player.call("pid")))


def ended(pid: int) -> bool:
    """Whether a process is over; one that nobody has waited for yet is."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# The death of the owner


async def test_the_death_of_the_owner_fails_all_that_it_had(
    spawn: Spawn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    host = await spawn()
    player, other = Player(host, "one"), Player(host, "two")
    pid = await pid_of(player)
    assert pid != os.getpid()
    await other.open()
    held = [
        each.call("hold", begun=str(tmp_path / f"{each.sid}{number}"), go=str(tmp_path / "never"))
        for each in (player, other)
        for number in range(20)
    ]
    await until(lambda: len(list(tmp_path.iterdir())) == 40)
    stream = host.tasks("workshop", "large")
    assert isinstance(await anext(stream), bytes)
    os.kill(pid, signal.SIGKILL)
    with anyio.fail_after(10):
        outcomes = await asyncio.gather(*held)
        assert {(kind(outcome), outcome.status, outcome.ran) for outcome in outcomes} == {
            ("worker_lost", 410, "unknown")
        }
        with pytest.raises(ORSError, match="broke off"):
            [piece async for piece in stream]
        # whatever is asked of a session afterwards
        for outcome in (
            await player.call("echo"),
            await player.ask("prompt"),
            await host.touch("two", TRAINER),
            await host.cancel("one", TRAINER, "one-1"),
        ):
            assert kind(outcome) == "worker_lost"
        assert await host.end("one", TRAINER) == Document(b"{}")
        for outcome in (
            await host.open("three", None, Start(), TRAINER, None),
            await host.task("workshop", TaskQuery("splits")),
            await anext(host.tasks("workshop", "train")),
        ):
            assert kind(outcome) == "worker_unavailable" and outcome.status == 503
            assert outcome.retryable and outcome.retry_after == 2.0
        status = await host.status()
        assert status["ready"] is False and "gone" in status["lost"]
        await host.drain(5)
        await until(lambda: "ended with -9; its sessions are lost" in caplog.text)
        await host.close()
        await host.close()


async def test_over_http_a_dead_owner_is_410_and_503(tmp_path: Path) -> None:
    served = Served([Workshop], host_process="spawned")
    try:
        headers = {"X-Session-ID": "s"}
        create = {"split": "train", "index": 0}
        assert served.client.post("/create", json=create, headers=headers).status_code == 200
        events = served.client.post("/call", json={"name": "quit", "input": {"code": 3}}, headers=headers)
        assert events.status_code == 410 and events.json()["kind"] == "worker_lost"
        assert served.client.get("/prompt", headers=headers).json()["kind"] == "worker_lost"
        assert served.client.post("/ping", headers=headers).status_code == 410
        refused = served.client.post("/create", json=create, headers={"X-Session-ID": "t"})
        assert refused.status_code == 503 and refused.headers["retry-after"] == "2"
        assert served.client.post("/delete", headers=headers).status_code == 200
        assert served.client.post("/tasks", json={"split": "train"}).status_code == 503
        ready = served.client.get("/ready")
        assert ready.status_code == 503 and "gone" in ready.json()["detail"]
        assert served.client.get("/health").status_code == 200
        assert served.client.get("/tools").status_code == 200
    finally:
        served.stop()


async def test_death_is_seen_though_a_child_keeps_the_connection_open(spawn: Spawn, tmp_path: Path) -> None:
    host = await spawn()
    player, child = Player(host, "one"), tmp_path / "child"
    await player.open()
    try:
        with anyio.fail_after(20):
            assert kind(await player.call("fork_and_quit", child=str(child))) == "worker_lost"
            await host.close()
    finally:
        os.kill(int(child.read_text()), signal.SIGKILL)


async def test_death_and_closing_where_processes_cannot_be_watched(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not every system has descriptors for processes."""
    monkeypatch.delattr(os, "pidfd_open")
    lost, closed = await spawn(), await spawn()
    pid = await pid_of(Player(closed, "one"))
    with anyio.fail_after(20):
        player = Player(lost, "one")
        await player.open()
        assert kind(await player.call("quit", code=4)) == "worker_lost"
        await until(lambda: lost._exited.done())
        await closed.close()
    assert ended(pid)


async def test_an_owner_that_dies_while_it_closes_is_no_error(spawn: Spawn, tmp_path: Path) -> None:
    host = await spawn()
    player = Player(host, "one")
    pid = await pid_of(player)
    begun, go = tmp_path / "begun", tmp_path / "go"
    player.call("hold", begun=str(begun), go=str(go))
    await until(begun.exists)
    os.kill(pid, signal.SIGSTOP)
    closing = asyncio.ensure_future(host.close())
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    with anyio.fail_after(10):
        await closing
    assert ended(pid)


# Starting


async def test_what_authors_raise_while_they_are_imported_is_told() -> None:
    with anyio.fail_after(60), pytest.raises(AuthoringError, match="RuntimeError: no accelerator here") as caught:
        await RemoteHost.spawn(functools.partial(broken, "exception"))
    # the traceback of the other process, for whoever reads the log
    assert "in broken" in str(caught.value.__cause__)
    with anyio.fail_after(60), pytest.raises(AuthoringError, match="SystemExit: not today"):
        await RemoteHost.spawn(functools.partial(broken, "exit"))


async def test_a_process_that_dies_while_it_starts_is_told() -> None:
    with anyio.fail_after(60), pytest.raises(ORSError, match="ended with 9 before it was ready"):
        await RemoteHost.spawn(functools.partial(broken, "die"))


async def test_a_start_that_is_given_up_leaves_no_process() -> None:
    await (await RemoteHost.spawn(offerings)).close()  # what is made once stays
    before = set(psutil.Process().children())
    with pytest.raises(TimeoutError):
        with anyio.fail_after(1):
            await RemoteHost.spawn(functools.partial(broken, "hang"))
    await until(lambda: set(psutil.Process().children()) <= before)


async def test_classes_that_cannot_be_imported_by_name_are_refused() -> None:
    class Local(Environment):
        pass

    with pytest.raises(AuthoringError, match="top level of a module"):
        await RemoteHost.spawn(lambda: [Local])  # type: ignore[list-item]


async def test_a_server_whose_owner_cannot_start_does_not_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text(
        textwrap.dedent("""
            import multiprocessing
            from ors import Environment, ToolOutput, tool
            if multiprocessing.parent_process() is not None:
                raise RuntimeError("this module is for one process")
            class Only(Environment):
                @classmethod
                def list_splits(cls): return ["train"]
                @classmethod
                def list_tasks(cls, split): return [{}]
                def get_prompt(self): return "?"
                @tool
                def nothing(self) -> ToolOutput:
                    "Nothing."
        """)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    from only_here import Only  # type: ignore[import-not-found]

    with pytest.raises(RuntimeError, match="could not start"):
        Served([Only], host_process="spawned")
    assert "RuntimeError: this module is for one process" in caplog.text


# Ending


async def test_nothing_is_left_behind(spawn: Spawn) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    await (await RemoteHost.spawn(offerings)).close()  # what is made once stays
    before, threads = descriptors(), psutil.Process().num_threads()
    host = await spawn()
    pid = await pid_of(Player(host, "one"))
    await host.close()
    assert ended(pid)
    assert descriptors() == before
    assert psutil.Process().num_threads() <= threads


async def test_closing_tears_down(spawn: Spawn, tmp_path: Path) -> None:
    host = await spawn()
    for name in ("one", "two"):
        player = Player(host, name)
        await player.open(task={"torn_down": str(tmp_path / name)})
        await player.ask("prompt")  # its setup is over
    await host.close()
    assert (tmp_path / "one").exists() and (tmp_path / "two").exists()


async def test_a_teardown_that_hangs_does_not_keep_the_process(spawn: Spawn, tmp_path: Path) -> None:
    host = await spawn(teardown_timeout_s=0.2)
    player = Player(host, "one")
    await player.open(task={"hang_teardown": str(tmp_path / "never")})
    pid = int(text(await player.call("pid")))
    with anyio.fail_after(20):
        await host.close()
    assert ended(pid)


async def test_draining(spawn: Spawn, tmp_path: Path) -> None:
    host = await spawn()
    player = Player(host, "one")
    begun, go, torn_down = (tmp_path / name for name in ("begun", "go", "torn_down"))
    await player.open(task={"torn_down": str(torn_down)})
    held = player.call("hold", begun=str(begun), go=str(go))
    await until(begun.exists)
    draining = asyncio.ensure_future(host.drain(30))
    await until(lambda: _draining(host))
    assert kind(await Player(host, "two").open()) == "draining"
    assert not held.done()
    go.touch()
    with anyio.fail_after(20):
        assert text(await held) == "held 1"
        await draining
    assert torn_down.exists()
    # the teardown has told the front's clients why
    assert kind(await player.ask("prompt")) == "session_ended"


async def _draining(host: RemoteHost) -> bool:
    return bool((await host.status())["draining"])


async def test_signals_for_the_server_are_left_to_it(spawn: Spawn) -> None:
    host = await spawn()
    player = Player(host, "one")
    pid = await pid_of(player)
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGINT)
    for _ in range(3):
        assert int(text(await player.call("pid"))) == pid
    # processes that authors start are not deaf to them
    with anyio.fail_after(60):
        assert text(await player.call("start_others")) == "[3, 6] -15 -15"


SCRIPT = """
import asyncio, functools, os, signal, sys, time
sys.path.insert(0, {tests!r})
from hosts.environments import broken, offerings
from ors.core.ports import Op, Principal, Start
from ors.hosts.local import HostOptions
from ors.hosts.remote import RemoteHost

async def main():
    host = await RemoteHost.spawn(offerings)
    await host.open("one", None, Start(task={{"torn_down": {mark!r}}}), Principal(), None)
    pid = await host.perform("one", Principal(), Op("call", "c", "pid", {{}}))
    print(pid.body.decode(), flush=True)
    if {how!r} == "killed, but for a child" and os.fork() == 0:
        os.close(1)
        time.sleep(60)
        os._exit(0)
    if {how!r} != "left":
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    asyncio.run(main())
    # the host was never closed
"""


@pytest.mark.parametrize("how", ["killed", "killed, but for a child", "left"])
def test_an_owner_never_outlives_its_front(how: str, tmp_path: Path) -> None:
    mark = tmp_path / "torn_down"
    script = tmp_path / "front.py"
    script.write_text(SCRIPT.format(tests=str(ROOT / "tests"), mark=str(mark), how=how))
    out, log = tmp_path / "out", tmp_path / "log"
    with out.open("w") as told, log.open("w") as complained:
        front = subprocess.Popen([sys.executable, str(script)], stdout=told, stderr=complained, start_new_session=True)
    try:
        assert front.wait(60) == (0 if how == "left" else -signal.SIGKILL), log.read_text()
        pid = int(json.loads(out.read_text())["blocks"][0]["text"])
        wait_until(lambda: ended(pid), within_s=20)
        assert mark.exists(), "its sessions are torn down first"
    finally:
        if how == "killed, but for a child":
            os.killpg(front.pid, signal.SIGKILL)


HANGING = """
import asyncio, functools, sys
sys.path.insert(0, {tests!r})
from hosts.environments import broken
from ors.hosts.local import HostOptions
from ors.hosts.remote import RemoteHost

if __name__ == "__main__":
    asyncio.run(RemoteHost.spawn(functools.partial(broken, "hang"), HostOptions(teardown_timeout_s=0.1)))
"""


def test_an_owner_that_hangs_in_an_import_does_not_outlive_its_front(tmp_path: Path) -> None:
    script = tmp_path / "front.py"
    script.write_text(HANGING.format(tests=str(ROOT / "tests")))
    front = subprocess.Popen([sys.executable, str(script)])
    try:
        owner = wait_until(lambda: _hanging(front.pid), within_s=60)
    finally:
        front.kill()
        front.wait()
    wait_until(lambda: ended(owner), within_s=30)


def _hanging(front: int) -> int | None:
    """The owner, once its watch over its front has begun."""
    for child in psutil.Process(front).children():
        names = [Path(f"/proc/{child.pid}/task/{thread.id}/comm").read_text() for thread in child.threads()]
        if "spawn_main" in " ".join(child.cmdline()) and len(names) > 1:
            return int(child.pid)
    return None


UNGUARDED = """
import sys
sys.path.insert(0, {tests!r})
from hosts.environments import Workshop
from ors import Server
Server([Workshop], host_process="spawned").run("127.0.0.1", 0)
"""


def test_a_script_without_a_guard_is_told_about_it(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED.format(tests=str(ROOT / "tests")))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100)
    assert done.returncode != 0
    assert "if __name__ == '__main__':" in done.stderr


RUN = """
import sys
sys.path.insert(0, {tests!r})
from hosts.environments import Workshop
from ors import Server
if __name__ == "__main__":
    Server([Workshop], host_process="spawned", shutdown_grace=20).run("127.0.0.1", 0)
"""


async def test_sigterm_to_the_whole_group_drains_first(tmp_path: Path) -> None:
    """A service manager sends it to every process of the group at once."""
    import httpx

    script, log = tmp_path / "run.py", tmp_path / "log"
    script.write_text(RUN.format(tests=str(ROOT / "tests")))
    with log.open("w") as sink:
        process = subprocess.Popen([sys.executable, str(script)], stderr=sink, start_new_session=True)
    try:
        line = await until(
            lambda: next((line for line in log.read_text().splitlines() if "http://" in line), None), within_s=60
        )
        url = line.partition("http://")[2].split()[0]
        begun, go, torn_down = (str(tmp_path / name) for name in ("begun", "go", "torn_down"))
        headers = {"X-Session-ID": "s"}
        async with httpx.AsyncClient(base_url=f"http://{url}", timeout=30, headers=headers) as client:
            task = {"torn_down": torn_down}
            assert (await client.post("/create", json={"task_spec": task})).status_code == 200
            body = {"name": "hold", "input": {"begun": begun, "go": go}}
            held = asyncio.ensure_future(client.post("/call", json=body))
            await until(Path(begun).exists)
            os.killpg(process.pid, signal.SIGTERM)
            await until(lambda: "shutting down" in log.read_text())
            Path(go).touch()
            assert "held 1" in (await held).text
        await until(lambda: process.poll() is not None, within_s=30)
        assert process.returncode == 0, log.read_text()
        assert Path(torn_down).exists()
        assert "episode ended" in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


# Who waits


async def test_the_owner_knows_who_has_left(spawn: Spawn, tmp_path: Path) -> None:
    """A running call keeps its session alive only while its client is there."""
    host = await spawn(idle_s=0.5)
    waiting, idle = Player(host, "waiting"), Player(host, "idle")
    await waiting.open()
    held = waiting.call("hold", begun=str(tmp_path / "begun"), go=str(tmp_path / "never"))
    await until((tmp_path / "begun").exists)
    await idle.open()
    # a session that nobody uses has expired: those that were to expire by then have
    await until(lambda: _sessions(host, 1), within_s=20)
    assert not held.done()
    held.cancel()
    await until(lambda: _sessions(host, 0), within_s=20)
    assert kind(await waiting.call("echo")) == "session_ended"


async def _sessions(host: RemoteHost, count: int) -> bool:
    return bool((await host.status())["sessions"] == count)


async def test_a_request_that_cannot_be_sent_fails_alone(spawn: Spawn) -> None:
    host = await spawn()
    player = Player(host, "one")
    await player.open()
    for value in (float("nan"), "\ud800", {1}, 10**4300):
        assert kind(await player.call("echo", value=value)) == "invalid_request"
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert kind(await player.call("echo", value=deep)) == "invalid_request"
    assert kind(await host.open("\ud800", None, Start(), TRAINER, None)) == "invalid_request"
    assert kind(await host.open("two", None, Start(task=deep), TRAINER, None)) == "invalid_request"
    assert text(await player.call("echo", value=1)) == "int"


async def test_an_outcome_that_cannot_be_sent_fails_alone(spawn: Spawn) -> None:
    host = await spawn()
    player = Player(host, "one")
    await player.open("corridor")
    failed = await player.ask("step", input="break")
    assert kind(failed) == "bad_output" and "NaN" in failed.detail
    assert (await player.ask("step", input=1)).observation["at"] == 1


async def test_a_thousand_sessions_and_ten_thousand_calls(spawn: Spawn) -> None:
    host = await spawn()
    players = [Player(host, f"p{number}") for number in range(1000)]
    with anyio.fail_after(100):
        assert all(isinstance(opened, Opened) for opened in await asyncio.gather(*(p.open() for p in players)))
        outcomes = await asyncio.gather(*[p.call("add", number=1) for _ in range(10) for p in players])
        assert [text(outcome) for outcome in outcomes] == [str(n + 1) for n in range(10) for _ in players]
        await asyncio.gather(*(p.end() for p in players))
    status = await host.status()
    assert (status["sessions"], status["calls"]) == (0, 0)


# Secrets and logs

SECRET = "sesame-open-wide"


async def test_secrets_reach_the_environment_and_no_log(
    spawn: Spawn, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    import hashlib

    host = await spawn()
    caplog.set_level(logging.DEBUG)
    player = Player(host, "one")
    await player.open(secrets=Secrets({"token": SECRET}))
    wanted = hashlib.sha256(repr([("token", SECRET)]).encode()).hexdigest()
    assert text(await player.call("digest")) == wanted
    record = await until(lambda: next((r for r in caplog.records if r.name == "author"), None))
    assert record.getMessage() == "my token is [secret]"
    assert "[secret]" in str(record.token)
    await player.end()
    await host.close()
    shown = "".join(str(vars(record)) for record in caplog.records) + "".join(capfd.readouterr())
    assert SECRET not in shown


async def test_logs_of_the_owner_are_written_by_the_front(spawn: Spawn, caplog: pytest.LogCaptureFixture) -> None:
    host = await spawn()
    caplog.set_level(logging.INFO)
    player = Player(host, "one")
    await player.open()
    await player.call("fail_loudly")
    await player.call("add", number=3)
    await player.end()
    ending = await until(lambda: next((r for r in caplog.records if r.getMessage() == "episode ended"), None))
    assert (ending.name, ending.levelno, ending.session, ending.calls) == ("ors.episode", logging.INFO, "one", 2)
    assert (ending.reward, ending.why) == (3.0, "deleted")
    wrong = next(r for r in caplog.records if r.name == "author")
    assert (wrong.getMessage(), wrong.levelno, wrong.place, wrong.count) == ("it went wrong", logging.ERROR, "here", 3)
    shown = logging.Formatter().format(wrong)
    assert "LookupError: nothing there" in shown and "in fail_loudly" in shown


async def test_the_front_says_which_records_it_wants(spawn: Spawn, caplog: pytest.LogCaptureFixture) -> None:
    host = await spawn()
    for level, wanted in ((logging.WARNING, 0), (logging.INFO, 1), (logging.ERROR, 1)):
        caplog.set_level(level)
        player = Player(host, f"at {level}")
        await player.open()
        await player.end()
        # the answer to this comes after the records of what was before
        await host.status()
        assert len([r for r in caplog.records if r.name == "ors.episode"]) == wanted


async def test_what_tools_print_is_kept(
    spawn: Spawn, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    kept, passed = await spawn(capture_output=True), await spawn(capture_output=False)
    for host, words in ((kept, "kept words"), (passed, "passed words")):
        player = Player(host, "one")
        await player.open()
        await player.call("print", text=words)
        await player.end()
        await host.close()
    out = capfd.readouterr().out
    assert "passed words" in out and "kept words" not in out
    assert "printed: kept words" in caplog.text


async def test_an_answer_that_is_none_ends_the_connection(spawn: Spawn, caplog: pytest.LogCaptureFixture) -> None:
    """A front that gets what it cannot read does not guess."""
    host = await spawn()
    player = Player(host, "one")
    pid = await pid_of(player)
    host._link.data_received(b"\xff\xff\xff\xff")
    with anyio.fail_after(10):
        await until(lambda: ended(pid))
    assert kind(await player.ask("prompt")) == "worker_lost"
    assert "cannot be read" in caplog.text


async def test_a_request_that_is_none_ends_the_owner(spawn: Spawn) -> None:
    host = await spawn()
    player = Player(host, "one")
    pid = await pid_of(player)
    host._link._transport.write(b"\x00\x00\x00\x01\xc1")  # type: ignore[union-attr]
    await until(lambda: ended(pid), within_s=20)
    outcome = await host.perform("one", TRAINER, Op("prompt"))
    assert kind(outcome) == "worker_lost"
