"""The limits that docs/guarantees.md admits: what author code in the server's process can reach, and what it cannot.

Each of them is broken on purpose here, on a real server in a process of its own.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

SOURCE = '''
import ctypes, os, signal, sys, time
from ors import Environment, Server, TextBlock, ToolOutput, tool

def said(text="done"):
    return ToolOutput(blocks=[TextBlock(text=str(text))])

class Rude(Environment):
    @classmethod
    def list_splits(cls): return ["train"]
    @classmethod
    def list_tasks(cls, split): return [{}]
    def get_prompt(self): return "Break something."

    @tool
    def exit(self) -> ToolOutput:
        os._exit(7)

    @tool
    def abort(self) -> ToolOutput:
        os.abort()

    @tool
    def crash(self) -> ToolOutput:
        ctypes.string_at(0)

    @tool
    def kill(self) -> ToolOutput:
        os.kill(os.getpid(), signal.SIGKILL)

    @tool
    def quit(self) -> ToolOutput:
        sys.exit(7)

    @tool
    def hold(self, mark: str, microseconds: int) -> ToolOutput:
        """C code that keeps the interpreter's lock."""
        open(mark, "w").close()
        ctypes.PyDLL(None).usleep(microseconds)
        return said()

    @tool
    def sleep(self, mark: str, microseconds: int) -> ToolOutput:
        open(mark, "w").close()
        time.sleep(microseconds / 1e6)
        return said()

    @tool
    def too_much(self) -> ToolOutput:
        bytearray(1 << 62)

    @tool
    def write_natively(self) -> ToolOutput:
        os.write(1, b"written natively\\n")
        print("printed politely")
        return said()

    @tool
    def change(self, name: str, value: str) -> ToolOutput:
        os.environ[name] = value
        return said()

    @tool
    def read(self, name: str) -> ToolOutput:
        return said(os.environ.get(name))

    @tool(timeout=0.2)
    def ignore(self) -> ToolOutput:
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                pass

if __name__ == "__main__":
    Server([Rude], cut_grace=0.2, shutdown_grace=1, host_process=sys.argv[2]).run("127.0.0.1", int(sys.argv[1]))
'''


class Served:
    """The server's process, and a client."""

    def __init__(self, folder: Path, host_process: str = "local") -> None:
        self.folder = folder
        self.output = folder / "stdout"
        self.log = folder / "stderr"
        (folder / "rude.py").write_text(SOURCE)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with self.output.open("w") as out, self.log.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "rude.py", str(port), host_process],
                cwd=folder,
                stdout=out,
                stderr=err,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
            )
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20)
        wait_until(self._healthy)

    def _healthy(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.client.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    def session(self, sid: str) -> str:
        """Open a session."""
        created = self.client.post("/create", json={"split": "train", "index": 0}, headers={"X-Session-ID": sid})
        assert created.status_code == 200, created.text
        return sid

    def call(self, sid: str, tool: str, **arguments: Any) -> str:
        """Call a tool; returns the events."""
        body = {"name": tool, "input": arguments}
        return self.client.post("/call", json=body, headers={"X-Session-ID": sid}).text

    def text(self, sid: str, tool: str, **arguments: Any) -> str:
        """Call a tool; returns the text of its result."""
        result = json.loads(
            re.findall(r"^event: end\r\ndata: (.*)\r$", self.call(sid, tool, **arguments), re.MULTILINE)[0]
        )
        return str(result["output"]["blocks"][0]["text"])

    def stop(self) -> int:
        """End the server as its supervisor would."""
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    yield from serving(tmp_path, "local")


@pytest.fixture
def spawned(tmp_path: Path) -> Iterator[Served]:
    """The environments in a process of their own."""
    yield from serving(tmp_path, "spawned")


def serving(folder: Path, host_process: str) -> Iterator[Served]:
    served = Served(folder, host_process)
    try:
        yield served
    finally:
        served.client.close()
        if served.process.poll() is None:
            served.process.kill()
            served.process.wait()


@pytest.mark.parametrize(
    ("tool", "code"),
    [("exit", 7), ("abort", -signal.SIGABRT), ("crash", -signal.SIGSEGV), ("kill", -signal.SIGKILL)],
)
def test_the_process_can_be_ended(served: Served, tool: str, code: int) -> None:
    sid = served.session("one")
    with pytest.raises(httpx.TransportError):
        served.call(sid, tool)
    assert served.process.wait(20) == code


def test_an_exit_that_is_an_exception_hurts_its_call_only(served: Served) -> None:
    sid = served.session("one")
    assert "event: error\r\ndata: SystemExit: 7\r\n" in served.call(sid, "quit")
    assert served.text(sid, "read", name="NOTHING") == "None"
    assert served.stop() == 0


@pytest.mark.parametrize(("tool", "everybody_waits"), [("hold", True), ("sleep", False)])
def test_code_that_keeps_the_interpreters_lock_stops_everybody(
    served: Served, tool: str, everybody_waits: bool
) -> None:
    sid, mark = served.session("one"), served.folder / "mark"
    with httpx.Client(base_url=served.client.base_url) as other:
        other.get("/health")
        calling = threading.Thread(
            target=served.call, args=(sid, tool), kwargs={"mark": str(mark), "microseconds": 2_000_000}
        )
        calling.start()
        wait_until(mark.exists)
        before = time.monotonic()
        assert other.get("/health", timeout=20).status_code == 200
        waited = time.monotonic() - before
        calling.join()
    assert (waited > 1) is everybody_waits, f"/health took {waited:.2f} s"


def test_memory_that_cannot_be_had_hurts_its_call_only(served: Served) -> None:
    sid = served.session("one")
    assert "event: error\r\ndata: MemoryError" in served.call(sid, "too_much")
    assert served.text(sid, "read", name="NOTHING") == "None"


def test_native_output_is_the_servers_own(served: Served) -> None:
    assert served.text(served.session("one"), "write_natively") == "done"
    assert served.stop() == 0
    assert served.output.read_text() == "written natively\n"


def test_what_is_the_processs_is_everybodys(served: Served) -> None:
    served.text(served.session("one"), "change", name="COLOUR", value="red")
    assert served.text(served.session("another"), "read", name="COLOUR") == "red"


def test_a_thread_that_ignores_its_cut_stays_counted_and_named(served: Served) -> None:
    sid = served.session("one")
    assert "'ignore' took longer than its limit of 0.2 s" in served.call(sid, "ignore")
    wait_until(lambda: served.client.get("/ready").json()["zombies"] == ["ignore"])
    # what the server holds for it is released: the session is over, others go on
    gone = served.client.get("/prompt", headers={"X-Session-ID": sid})
    assert (gone.status_code, gone.json()["kind"]) == (410, "session_ended")
    assert served.text(served.session("another"), "read", name="NOTHING") == "None"
    assert "zombie" in served.log.read_text()
    # and the process still ends in order
    assert served.stop() == 0


def test_a_process_of_their_own_ends_without_the_server(spawned: Served) -> None:
    sid = spawned.session("one")
    assert '"kind":"worker_lost"' in spawned.call(sid, "exit")
    assert spawned.client.get("/health").status_code == 200
    # nothing starts it again: the server says that it wants no more sessions
    assert spawned.client.get("/ready").status_code == 503
    refused = spawned.client.post("/create", json={"split": "train", "index": 0}, headers={"X-Session-ID": "two"})
    assert (refused.status_code, refused.json()["kind"]) == (503, "worker_unavailable")
    assert spawned.stop() == 0


def test_a_process_of_their_own_may_keep_its_interpreters_lock(spawned: Served) -> None:
    sid, mark = spawned.session("one"), spawned.folder / "mark"
    with ThreadPoolExecutor() as pool:
        calling = pool.submit(spawned.text, sid, "hold", mark=str(mark), microseconds=2_000_000)
        wait_until(mark.exists)
        with httpx.Client(base_url=spawned.client.base_url) as other:
            assert other.get("/health").status_code == 200
        assert not calling.done()
        assert calling.result() == "done"
