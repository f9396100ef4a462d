"""Anagrams: the 30,177 sets of words that the package `reasoning-gym` ships, read where they lie."""

from importlib.metadata import files

from ors import Environment, Server, ToolOutput, tool
from ors.tasks import Jsonl

(WORDS,) = (file.locate() for file in files("reasoning-gym") or () if file.name == "anagrams.jsonl")


class Anagrams(Environment):
    """All words that are made of the letters of one; a wrong one counts against those that are right."""

    tasks = Jsonl({"train": WORDS}, id=lambda task: task["words"][0])

    def get_prompt(self) -> str:
        letters = "".join(letter * count for letter, count in self.task_spec["letter_counts"].items())
        return f"Which English words have exactly the letters {letters}? There are {len(self.task_spec['words'])}."

    @tool
    def submit(self, words: list[str]) -> ToolOutput:
        """Submit the words."""
        given, wanted = {word.strip().lower() for word in words}, set(self.task_spec["words"])
        return ToolOutput(blocks="Noted.", reward=len(given & wanted) / len(given | wanted), finished=True)


if __name__ == "__main__":
    Server([Anagrams]).run(host="127.0.0.1", port=8080)
