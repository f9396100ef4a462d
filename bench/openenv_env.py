"""One small environment of steps, served by whichever implementation is named, or nothing but an echo.

    openenv_env.py {ors-kit|openenv|bare} PORT [--slow SECONDS] [--any-thread]

The class bodies are the same: what differs is the import. --slow: how long the constructor takes. bare: a WebSocket
that answers every message with a constant of an answer's size, on uvicorn's own protocol.
"""

import argparse
import time

parser = argparse.ArgumentParser()
parser.add_argument("implementation", choices=["ors-kit", "openenv", "bare"])
parser.add_argument("port", type=int)
parser.add_argument("--slow", type=float, default=0.0)
parser.add_argument("--any-thread", action="store_true", help="sessions share threads, where the implementation can")
options = parser.parse_args()

ANSWER = '{"type":"observation","data":{"observation":{"metadata":{},"text":"right"},"reward":1.0,"done":false}}'
MOST = 20_000


async def bare(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": ANSWER})


def environment():
    if options.implementation == "openenv":
        from openenv.core.env_server import Environment, create_app
        from openenv.core.env_server.types import Action, Observation, State
    else:
        from ors.openenv import Action, Environment, Observation, State, create_app

    class Answer(Action):
        answer: str
        wait_s: float = 0.0

    class Told(Observation):
        text: str = ""

    class Sums(Environment):
        SUPPORTS_CONCURRENT_SESSIONS = True
        # the task methods need nothing that an episode changes
        REUSE_FOR_TASKS = True
        thread_affinity = "any" if options.any_thread else "session"

        def __init__(self):
            super().__init__()
            time.sleep(options.slow)
            self._state = State()

        def list_splits(self):
            return ["train"]

        def num_tasks(self, split):
            return 1000

        def get_task(self, split, index):
            return {"question": f"What is {index}+{index}?"}

        def reset(self, seed=None, episode_id=None, index=0, **kwargs):
            self.answer = str(2 * index)
            self._state = State(episode_id=episode_id, step_count=0)
            return Told(text=f"What is {index}+{index}?")

        def step(self, action, timeout_s=None, **kwargs):
            if action.wait_s:
                time.sleep(action.wait_s)
            self._state.step_count += 1
            right = action.answer == self.answer
            return Told(text="right" if right else "wrong", reward=float(right), done=False)

        @property
        def state(self):
            return self._state

    return create_app(Sums, Answer, Told, env_name="sums", max_concurrent_envs=MOST)


if __name__ == "__main__":
    if options.implementation == "ors-kit":
        from ors.server import Server

        Server([environment()]).run(host="127.0.0.1", port=options.port)
    else:
        import uvicorn

        app = bare if options.implementation == "bare" else environment()
        uvicorn.run(
            app,
            host="127.0.0.1",
            port=options.port,
            access_log=False,
            log_level="warning",
            **({"ws": "websockets-sansio", "lifespan": "off"} if app is bare else {}),
        )
