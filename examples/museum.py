"""A folder of files: questions whose answers are somewhere in a museum's papers.

The agent lists, searches and reads the files, and answers once. It sees the folder of documents and nothing beside it:
the answers lie in the folder above.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ors import Environment, Server, Split, TextBlock, ToolError, ToolOutput, tool

FOLDER = Path(__file__).resolve().parent / "data" / "museum"
DOCUMENTS = FOLDER / "documents"
QUESTIONS = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))


def documents() -> dict[str, Path]:
    """The documents by their names. What is picked from here is in the folder, whatever an agent asks for."""
    files = (path for path in sorted(DOCUMENTS.rglob("*")) if path.is_file())
    return {path.relative_to(DOCUMENTS).as_posix(): path for path in files if path.resolve().is_relative_to(DOCUMENTS)}


class Museum(Environment):
    """Find an answer in a folder of documents."""

    @classmethod
    def list_splits(cls) -> list[Split]:
        return [Split(name="train", type="train"), Split(name="test", type="test")]

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        return [{"split": split, "index": i, "question": row["question"]} for i, row in enumerate(QUESTIONS[split])]

    def setup(self) -> None:
        self.row = QUESTIONS[self.task_spec["split"]][self.task_spec["index"]]

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text=f"{self.row['question']} Find the answer in the museum's papers; there is one try.")]

    @tool
    def list_files(self) -> ToolOutput:
        """List the documents with their sizes."""
        lines = [f"{name} ({path.stat().st_size} bytes)" for name, path in documents().items()]
        return ToolOutput(blocks=[TextBlock(text="\n".join(lines))])

    @tool
    def read_file(self, name: str) -> ToolOutput:
        """Read a document.

        Args:
            name: As list_files says it.
        """
        path = documents().get(name)
        if path is None:
            raise ToolError(f"there is no document {name!r}; list_files names them")
        return ToolOutput(blocks=[TextBlock(text=path.read_text(encoding="utf-8"))])

    @tool
    def search(self, text: str) -> ToolOutput:
        """Find the lines of all documents that contain a text; upper and lower case are the same.

        Args:
            text: A word or a few.
        """
        found = [
            f"{name}:{number}: {line}"
            for name, path in documents().items()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
            if text.casefold() in line.casefold()
        ]
        return ToolOutput(blocks=[TextBlock(text="\n".join(found) or "nothing found")])

    @tool
    def answer(self, text: str) -> ToolOutput:
        """Answer the question; there is one try.

        Args:
            text: The name, the year or the word that was asked for.
        """
        right = text.strip().casefold() == self.row["answer"].casefold()
        return ToolOutput(blocks=[TextBlock(text="Right." if right else "Wrong.")], reward=float(right), finished=True)


if __name__ == "__main__":
    Server([Museum]).run(host="127.0.0.1", port=8080)
