"""The maths tasks of the standard's text, in a file of JSON lines."""

from ors import Environment, Server, ToolOutput, tool
from ors.tasks import Jsonl


class Maths(Environment):
    """One question, one answer."""

    tasks = Jsonl({"train": "data/texts/maths.jsonl"})

    def get_prompt(self) -> str:
        return f"{self.task_spec['question']} Submit the number alone."

    @tool
    def submit(self, answer: str) -> ToolOutput:
        """Submit the answer."""
        right = answer.strip() == self.task_spec["answer"]
        return ToolOutput(blocks="Correct." if right else "Wrong.", reward=float(right), finished=True)


if __name__ == "__main__":
    Server([Maths]).run(host="127.0.0.1", port=8080)
