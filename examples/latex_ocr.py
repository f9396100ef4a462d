"""The LaTeX OCR environment of the Task API's guide: 7,595 test images in a data set of Hugging Face."""

import os
from difflib import SequenceMatcher

from ors import Environment, ImageBlock, Server, TextBlock, ToolOutput, tool
from ors.tasks import HuggingFace

DATA = os.environ.get("LATEX_OCR", "unsloth/LaTeX_OCR")


class LatexOCR(Environment):
    """A picture of a formula, to be written in LaTeX; the reward is how much of it is the same."""

    tasks = HuggingFace({"train": DATA, "test": DATA})

    def get_prompt(self) -> list[TextBlock | ImageBlock]:
        return [TextBlock(text="Write this formula in LaTeX."), ImageBlock(**self.task_spec["image"])]

    @tool
    def submit(self, latex: str) -> ToolOutput:
        """Submit the formula."""
        wanted, given = self.task_spec["text"].split(), latex.split()
        return ToolOutput(blocks="Noted.", reward=SequenceMatcher(None, wanted, given).ratio(), finished=True)


if __name__ == "__main__":
    Server([LatexOCR]).run(host="127.0.0.1", port=8080)
