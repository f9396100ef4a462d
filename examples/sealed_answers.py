"""Sealed answers: a secret that each session brings along.

Published answers end up in training data. The file of this environment holds no answer, only its seal: an HMAC under a
key that stays with the people who run the test. They open a session with `secrets={"answer_key": …}`; the environment
checks answers with it and shows it to nobody, in no prompt, no output and no error. The key of this example's file is
`the-key-of-an-example`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from ors import Environment, JSONObject, Server, Split, TextBlock, ToolOutput, tool

FILE = Path(__file__).resolve().parent / "data" / "sealed_answers.json"
SEALED = json.loads(FILE.read_text(encoding="utf-8"))


def seal(key: str, question: str, answer: str) -> str:
    """Seal an answer; the question goes in too, so that equal answers have different seals."""
    text = f"{question}\n{' '.join(answer.casefold().split())}"
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


class SealedAnswers(Environment):
    """Questions that can be marked only by those who have the key."""

    def __init__(self, task_spec: JSONObject, secrets: dict[str, str] | None = None) -> None:
        super().__init__(task_spec)
        self._key = (secrets or {}).get("answer_key", "")

    @classmethod
    def list_splits(cls) -> list[Split]:
        return [Split(name="test", type="test")]

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        return SEALED["tasks"]

    def setup(self) -> None:
        # Better no episode than one in which every answer is wrong. The message says which secret, never what it was.
        if not hmac.compare_digest(seal(self._key, "check", ""), SEALED["check"]):
            raise PermissionError("the secret 'answer_key' is missing or is not the key of these seals")

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text=f"{self.task_spec['question']} Answer with one word or number; there is one try.")]

    @tool
    def answer(self, text: str) -> ToolOutput:
        """Answer the question.

        Args:
            text: One word or number.
        """
        given = seal(self._key, str(self.task_spec["question"]), text)
        right = hmac.compare_digest(given, str(self.task_spec["seal"]))
        return ToolOutput(blocks=[TextBlock(text="Right." if right else "Wrong.")], reward=float(right), finished=True)


if __name__ == "__main__":
    Server([SealedAnswers]).run(host="127.0.0.1", port=8080)
