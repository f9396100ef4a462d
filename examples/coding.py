"""The coding task of the standard's text. It runs what the agent writes: serve it where that can do no harm."""

import subprocess
import sys

from ors import Environment, Server, ToolOutput, tool
from ors.tasks import Folder


class Coding(Environment):
    tasks = Folder({"train": "data/texts/coding"}, id="problem_id")

    def get_prompt(self) -> str:
        return f"{self.task_spec['description']}. Submit a Python program: text comes in, text goes out."

    def passes(self, program: str, input: str, output: str) -> bool:
        run, limit = [sys.executable, "-I", "-c", program], self.task_spec["time_limit_seconds"]
        try:
            done = subprocess.run(run, input=input, text=True, capture_output=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return False
        return done.stdout.strip() == output

    @tool
    def submit(self, program: str) -> ToolOutput:
        """Submit the program."""
        passed = [self.passes(program, **case) for case in self.task_spec["test_cases"]]
        words = f"{sum(passed)} of {len(passed)} tests passed."
        return ToolOutput(blocks=words, reward=sum(passed) / len(passed), finished=True)


if __name__ == "__main__":
    Server([Coding]).run(host="127.0.0.1", port=8080)
