"""One small environment, served by whichever implementation is named first.

    math_env.py {ors-kit|ors-sdk|openreward} PORT [--tasks N] [--indexed] [--key KEY]

The class bodies are the same for all three: what differs is the import and how keys are handed over.
"""

import argparse
import time

from pydantic import BaseModel

parser = argparse.ArgumentParser()
parser.add_argument("implementation", choices=["ors-kit", "ors-sdk", "openreward"])
parser.add_argument("port", type=int)
parser.add_argument("--tasks", type=int, default=1000)
parser.add_argument("--indexed", action="store_true", help="tasks by index only, nothing held in memory")
parser.add_argument("--key", help="the API key that requests must carry, where the implementation knows keys")
options = parser.parse_args()

if options.implementation == "openreward":
    from openreward.environments import Environment, Server, tool
    from openreward.environments.types import Split, TextBlock, ToolOutput
else:
    from ors import Environment, Server, Split, TextBlock, ToolOutput, tool


def make_task(index):
    return {"question": f"What is {index}+{index}?", "answer": str(2 * index)}


TASKS = [] if options.indexed else [make_task(index) for index in range(options.tasks)]


class SubmitInput(BaseModel):
    answer: str


class PauseInput(BaseModel):
    seconds: float


class Sums(Environment):
    @classmethod
    def list_splits(cls):
        return [Split(name="test", type="test")]

    @classmethod
    def list_tasks(cls, split):
        return list(TASKS)

    def get_prompt(self):
        return [TextBlock(text=self.task_spec["question"])]

    @tool
    async def submit(self, params: SubmitInput) -> ToolOutput:
        """Submit an answer."""
        return self.grade(params)

    @tool
    def submit_sync(self, params: SubmitInput) -> ToolOutput:
        """Submit an answer, from synchronous code."""
        return self.grade(params)

    @tool
    def pause(self, params: PauseInput) -> ToolOutput:
        """Block the thread that runs this, as a call into a library would."""
        time.sleep(params.seconds)
        return ToolOutput(blocks=[TextBlock(text="done")])

    def grade(self, params):
        right = params.answer.strip() == self.task_spec["answer"]
        reward = 1.0 if right else 0.0
        return ToolOutput(blocks=[TextBlock(text="Correct!" if right else "no")], reward=reward, finished=False)


class IndexedSums(Sums):
    @classmethod
    def list_tasks(cls, split):
        raise NotImplementedError

    @classmethod
    async def num_tasks(cls, split):
        return options.tasks

    @classmethod
    async def get_task(cls, split, index):
        return make_task(index)


if __name__ == "__main__":
    environment = IndexedSums if options.indexed else Sums
    environment.__name__ = "MathEnv"
    keys = {"api_keys": [options.key]} if options.implementation == "ors-kit" and options.key else {}
    Server([environment], **keys).run(host="127.0.0.1", port=options.port)
