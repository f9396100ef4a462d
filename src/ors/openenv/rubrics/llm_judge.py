"""A rubric that asks a language model."""

from __future__ import annotations

import re
from typing import Any, Protocol

from ors.openenv.rubrics.base import Rubric

__all__ = ["LLMJudge"]

_NUMBER = r"(\d+\.?\d*)"


class Completes(Protocol):
    """What the judge needs of a client of a language model, as `LLMClient` has it."""

    async def complete(self, prompt: str, /) -> str:
        """The model's answer to a prompt."""
        ...


class LLMJudge(Rubric):
    """Asks a language model for a number, and takes the first that it says.

    prompt_template: text with `{action}` and `{observation}`. score_pattern: a regular expression for the score, its
    first group where it has one. default_score: where there is no score in the answer. normalize: keep it in [0, 1].
    """

    def __init__(
        self,
        prompt_template: str,
        client: Completes,
        *,
        score_pattern: str | None = None,
        default_score: float = 0.0,
        normalize: bool = True,
    ) -> None:
        super().__init__()
        self.prompt_template = prompt_template
        self._client = client
        self._score_pattern = re.compile(score_pattern or _NUMBER)
        self.default_score = default_score
        self.normalize = normalize

    async def forward(self, action: Any, observation: Any) -> float:
        return self._parse_score(await self._client.complete(self._render_prompt(action, observation)))

    def _render_prompt(self, action: Any, observation: Any) -> str:
        return self.prompt_template.format(action=action, observation=observation)

    def _parse_score(self, response: str) -> float:
        found = self._score_pattern.search(response)
        try:
            score = float(found.group(1 if found.re.groups else 0)) if found else self.default_score
        except (ValueError, TypeError):
            return self.default_score
        return max(0.0, min(1.0, score)) if found and self.normalize else score

    def state_dict(self) -> dict[str, Any]:
        return {
            "prompt_template": self.prompt_template,
            "score_pattern": self._score_pattern.pattern,
            "default_score": self.default_score,
            "normalize": self.normalize,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.prompt_template = state.get("prompt_template", self.prompt_template)
        self._score_pattern = re.compile(state.get("score_pattern", self._score_pattern.pattern))
        self.default_score = state.get("default_score", self.default_score)
        self.normalize = state.get("normalize", self.normalize)
