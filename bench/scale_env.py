"""Tasks from files, served by whichever implementation is named first, as its users would write it.

    scale_env.py {ors-kit|ors-sdk|openreward|openenv} PORT [--key KEY] [--cache FOLDER] SPLIT=FILE …

Ours declares a source. The others have no sources: their environment reads the file when it is imported and returns the
list, which is the best that can be done there.
"""

import argparse
import json

from pydantic import BaseModel

parser = argparse.ArgumentParser()
parser.add_argument("implementation", choices=["ors-kit", "ors-sdk", "openreward", "openenv"])
parser.add_argument("port", type=int)
parser.add_argument("--key")
parser.add_argument("--cache")
parser.add_argument("files", nargs="+")
options = parser.parse_args()
files = dict(file.split("=", 1) for file in options.files)

if options.implementation == "openenv":
    import uvicorn
    from openenv.core.env_server import Action, Environment, Observation, State, create_app

    TASKS = {}
    for split, file in files.items():
        with open(file) as lines:
            TASKS[split] = [json.loads(line) for line in lines]

    class MathEnv(Environment):
        def reset(self, seed=None, episode_id=None, **kwargs):
            return Observation()

        def step(self, action, timeout_s=None, **kwargs):
            return Observation()

        @property
        def state(self):
            return State()

        def list_splits(self):
            return list(TASKS)

        def list_tasks(self, split):
            return TASKS[split]

        def num_tasks(self, split):
            return len(TASKS[split])

        def get_task(self, split, index):
            return TASKS[split][index]

        def get_task_range(self, split, start=None, stop=None):
            return TASKS[split][start:stop]

    app = create_app(MathEnv, Action, Observation, env_name="mathenv")
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")
    raise SystemExit

if options.implementation == "openreward":
    from openreward.environments import Environment, Server, tool
    from openreward.environments.types import Split, TextBlock, ToolOutput
else:
    from ors import Environment, Server, Split, TextBlock, ToolOutput, tool


class SubmitInput(BaseModel):
    answer: str


class MathEnv(Environment):
    def get_prompt(self):
        return [TextBlock(text=self.task_spec["question"])]

    @tool
    async def submit(self, params: SubmitInput) -> ToolOutput:
        """Submit an answer."""
        right = params.answer == self.task_spec["answer"]
        return ToolOutput(blocks=[TextBlock(text="Correct!" if right else "no")], reward=float(right), finished=False)


if options.implementation == "ors-kit":
    import ors.tasks

    types = dict.fromkeys(files, "test")
    if any(file.endswith(".parquet") for file in files.values()):
        MathEnv.tasks = ors.tasks.Parquet(files, types=types)
    else:
        MathEnv.tasks = ors.tasks.Jsonl(files, types=types, cache=options.cache)
else:
    TASKS = {}
    for split, file in files.items():
        with open(file) as lines:
            TASKS[split] = [json.loads(line) for line in lines]

    def list_splits(cls):
        return [Split(name=split, type="test") for split in files]

    def list_tasks(cls, split):
        return TASKS[split]

    MathEnv.list_splits = classmethod(list_splits)
    MathEnv.list_tasks = classmethod(list_tasks)
    MathEnv.__abstractmethods__ = frozenset()


if __name__ == "__main__":
    keys = {"api_keys": [options.key]} if options.implementation == "ors-kit" and options.key else {}
    Server([MathEnv], **keys).run(host="127.0.0.1", port=options.port)
