"""The client wherever people use it: many threads, a notebook's running loop, forked and spawned workers, at exit."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings
from typing import Any

import nbformat
from nbclient import NotebookClient

from ors.client import ORS, AsyncORS
from served import Served

from .played import seen_of


def play(env: Any, name: str) -> float:
    with env.session(split="train", index=0) as session:
        output = session.call_tool("add", {"name": name})
        return float(output.reward or 0)


def test_from_64_threads(served: Served, url: str) -> None:
    with ORS(url) as client:
        env = client.environment("played")
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            rewards = list(pool.map(lambda number: play(env, f"thread-{number}"), range(192)))
        assert rewards == [1.0] * 192
        assert all(seen_of(f"thread-{number}") == 1 for number in range(192))
        with env.session(split="train", index=0) as session, concurrent.futures.ThreadPoolExecutor(64) as pool:
            list(pool.map(lambda number: session.call_tool("add", {"name": f"one-{number}"}), range(128)))
            assert len(session.rewards) == 128


def test_inside_a_running_loop(url: str) -> None:
    async def notebook() -> None:
        with ORS(url) as client:
            assert play(client.environment("played"), "loop") == 1.0

    asyncio.run(notebook())


def test_in_a_notebook(url: str) -> None:
    cells = [
        f"from ors.client import ORS, AsyncORS\nurl = {url!r}",
        "client = ORS(url)\nenv = client.environment('played')",
        "with env.session(split='train', index=0) as session:\n"
        "    print(session.call_tool('add', {'name': 'cell'}).reward)",
        "async with AsyncORS(url) as other, other.environment('played').session(split='train', index=1) as session:\n"
        "    print((await session.call_tool('add', {'name': 'async cell'})).reward)",
        "client.close()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the notebook's own machinery
        NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    printed = [output.text for cell in notebook.cells for output in cell.outputs if output.output_type == "stream"]
    assert printed == ["1.0\n", "1.0\n"]
    assert seen_of("cell") == seen_of("async cell") == 1


def test_async_from_many_loops(url: str) -> None:
    client = AsyncORS(url)
    env = client.environment("played")

    async def one(name: str) -> float:
        async with env.session(split="train", index=0) as session:
            return float((await session.call_tool("add", {"name": name})).reward or 0)

    async def many(number: int) -> list[float]:
        return await asyncio.gather(*(one(f"{number}-{each}") for each in range(20)))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda number: asyncio.run(many(number)), range(8)))
    assert results == [[1.0] * 20] * 8


def _in_a_worker(pickled: bytes, name: str) -> float:
    return play(pickle.loads(pickled), name)


def test_in_spawned_workers(url: str) -> None:
    with ORS(url) as client:
        handle = pickle.dumps(client.environment("played"))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(_in_a_worker, [handle] * 4, [f"spawned-{number}" for number in range(4)])) == [1.0] * 4
    assert all(seen_of(f"spawned-{number}") == 1 for number in range(4))


def test_after_a_fork(url: str) -> None:
    with ORS(url) as client, client.environment("played").session(split="train", index=0) as session:
        session.call_tool("add", {"name": "parent-before"})
        env = client.environment("played")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                rewards = [play(env, "child"), session.call_tool("add", {"name": "child-in-parents"}).reward]
                session.close()
                client.close()
                gc.collect()
                os.write(writer, repr(rewards).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(writer)
        said = os.read(reader, 1000)
        os.close(reader)
        _, status = os.waitpid(child, 0)
        assert (os.waitstatus_to_exitcode(status), said) == (0, b"[1.0, 1.0]")
        # the child closed what was its own: the session and the connections of the parent go on
        assert session.call_tool("add", {"name": "parent-after"}).reward == 1.0
        assert seen_of("child") == 1


def test_nothing_is_left_to_warn_of_at_exit(served: Served, url: str) -> None:
    code = (
        "from ors.client import ORS\n"
        "client = ORS(%r)\n"
        "session = client.environment('played').session(split='train', index=0).__enter__()\n"
        "print(session.call_tool('add', {'name': 'exit'}).reward)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code % url], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("1.0\n", "", 0)


def test_a_handle_that_nobody_closed_warns_of_nothing(url: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            client = ORS(url)
            assert play(client.environment("played"), "dropped") == 1.0
            del client
            gc.collect()
