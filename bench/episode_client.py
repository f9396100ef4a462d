"""Plays episodes on a server and says what that took; run by the interpreter of the client that is measured.

episode_client.py ors-kit|ors-sdk|aiohttp URL KEY SECONDS AT_ONCE
episode_client.py open URL KEY SESSIONS

An episode is a session opened, its prompt read, one call, the session deleted. The last line is JSON.
"""

import asyncio
import gc
import json
import resource
import sys
import time
import uuid

ENV = "mathenv"


def used_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rss_kib():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


async def play(env):
    """An episode with one of the two clients, whose methods have the same names."""
    async with env.session(split="test", index=1) as session:
        prompt = await session.get_prompt()
        if prompt[0].text != "What is 1+1?":
            raise RuntimeError(f"the prompt is {prompt}")
        output = await session.call_tool("submit", {"answer": "2"})
        if output.reward != 1.0:
            raise RuntimeError(f"the call came back as {output}")


async def play_by_hand(http, url):
    """The same requests, with nothing that a client adds."""
    headers = {"X-Session-ID": str(uuid.uuid4())}
    body = {"env_name": ENV, "split": "test", "index": 1}
    async with http.post(f"{url}/create", json=body, headers=headers) as answer:
        await answer.json()
    async with http.get(f"{url}/{ENV}/prompt", headers=headers) as answer:
        if (await answer.json())[0]["text"] != "What is 1+1?":
            raise RuntimeError("another prompt")
    body = {"name": "submit", "input": {"answer": "2"}, "task_id": uuid.uuid4().hex}
    async with http.post(f"{url}/{ENV}/call", json=body, headers=headers) as answer:
        if b'"reward":1.0' not in await answer.read():
            raise RuntimeError("no reward")
    async with http.post(f"{url}/delete", headers=headers) as answer:
        await answer.json()


async def measure(kind, url, key, seconds, at_once):
    """Episodes in a second, and what one takes of a processor."""
    close = None
    if kind == "aiohttp":
        import aiohttp

        http = aiohttp.ClientSession(headers={"X-API-Key": key}, connector=aiohttp.TCPConnector(limit=0))
        close = http.close

        def episode():
            return play_by_hand(http, url)
    else:
        from ors.client import AsyncORS

        client = AsyncORS(url, api_key=key)
        close = getattr(client, "close", None)
        env = client.environment(ENV)

        def episode():
            return play(env)

    done, counting, over = 0, False, time.monotonic() + 3600

    async def work():
        nonlocal done
        while time.monotonic() < over:
            await episode()
            if counting:
                done += 1

    workers = [asyncio.create_task(work()) for _ in range(at_once)]
    await asyncio.sleep(min(1.0, seconds / 2))  # connections are made, code is loaded
    counting, began, used = True, time.monotonic(), used_s()
    over = began + seconds
    await asyncio.gather(*workers)
    took = time.monotonic() - began
    if close is not None:
        await close()
    return {"episodes_per_s": done / took, "cpu_us": (used_s() - used) / done * 1e6, "episodes": done}


async def hold_open(url, key, count):
    """Open sessions until so many are open, all at once, and see what one holds."""
    from ors.client import AsyncORS

    failed = []
    async with AsyncORS(url, api_key=key) as client:
        env = client.environment(ENV)
        sessions = [env.session(split="test", index=1) for _ in range(64)]
        await asyncio.gather(*(session.__aenter__() for session in sessions))
        await asyncio.gather(*(session.__aexit__(None, None, None) for session in sessions))
        del sessions
        gc.collect()
        before, began = rss_kib(), time.monotonic()
        sessions = [env.session(split="test", index=1) for _ in range(count)]

        async def use(session):
            try:
                await session.__aenter__()
                await session.get_prompt()
                output = await session.call_tool("submit", {"answer": "2"})
                if output.reward != 1.0:
                    failed.append(f"no reward: {output}")
            except Exception as exc:
                failed.append(f"{type(exc).__name__}: {exc}")

        await asyncio.gather(*(use(session) for session in sessions))
        took = time.monotonic() - began
        busy = rss_kib() - before
        await asyncio.sleep(6)  # connections that nobody uses are closed by now
        gc.collect()
        idle = rss_kib() - before
        for outcome in await asyncio.gather(*(s.call_tool("submit", {"answer": "2"}) for s in sessions)):
            if outcome.reward != 1.0:
                failed.append("no reward the second time")
        await asyncio.gather(*(session.__aexit__(None, None, None) for session in sessions))
    return {
        "seconds": took,
        "busy_kib": busy / count,
        "kib": idle / count,
        "failed": failed[:3],
        "failures": len(failed),
    }


def main():
    kind, url, key, number = sys.argv[1:5]
    if kind == "open":
        print(json.dumps(asyncio.run(hold_open(url, key, int(number)))))
    else:
        print(json.dumps(asyncio.run(measure(kind, url, key, float(number), int(sys.argv[5])))))


if __name__ == "__main__":
    main()
