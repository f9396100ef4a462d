"""The environment of the Task API's guide, as its text has it; below, the little that the text leaves to the reader."""

# ruff: noqa
# mypy: ignore-errors

from typing import Any, Optional
from uuid import uuid4

from openenv.core.env_server import Environment
from openenv.core.env_server.types import State


class LatexOCREnvironment(Environment):
    SPLITS = ["train", "test"]

    def __init__(self, dataset_name: str = "unsloth/LaTeX_OCR") -> None:
        super().__init__()
        self.dataset_name = dataset_name

    # --- Task API: discovery only, no side effects ---

    def list_splits(self) -> list[str]:
        return self.SPLITS

    def num_tasks(self, split: str) -> int:
        return len(self._load_split(split))

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        return [{"id": f"{split}-{i}", "index": i} for i in range(self.num_tasks(split))]

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        n = self.num_tasks(split)
        if index < 0 or index >= n:
            raise IndexError(f"index {index} out of range for split {split} (n={n})")
        return {"id": f"{split}-{index}", "index": index, "split": split}

    def get_task_range(
        self, split: str, start: Optional[int] = None, stop: Optional[int] = None
    ) -> list[dict[str, Any]]:
        n = self.num_tasks(split)
        start = 0 if start is None else start
        stop = n if stop is None else min(stop, n)
        return [{"id": f"{split}-{i}", "index": i, "split": split} for i in range(start, stop)]

    # --- Episode: this is where a task is actually loaded ---

    def reset(
        self,
        split: str = "test",
        index: Optional[int] = None,
        seed: Optional[int] = None,
        episode_id: Optional[str] = None,
        **kwargs: Any,
    ) -> "LatexOCRObservation":
        if split not in self.list_splits():
            raise ValueError(f"unknown split {split!r}; expected {self.list_splits()}")
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        row = self._load_row(split, index, seed)
        return LatexOCRObservation(image_base64=row["image"], done=False)

    # --- What the guide does not show ---

    def _load_split(self, split: str) -> list[dict[str, str]]:
        count = {"train": 9, "test": 7}[split]
        return [{"image": f"{split} picture {i}", "latex": f"x^{i}"} for i in range(count)]

    def _load_row(self, split: str, index: Optional[int], seed: Optional[int]) -> dict[str, str]:
        rows = self._load_split(split)
        self._row = rows[(seed or 0) % len(rows) if index is None else index]
        return self._row

    def step(self, action: "LatexOCRAction", timeout_s: Optional[float] = None, **kwargs: Any) -> "LatexOCRObservation":
        self._state.step_count += 1
        return LatexOCRObservation(reward=float(action.latex == self._row["latex"]), done=True)

    @property
    def state(self) -> State:
        return self._state


from openenv.core.env_server import Action, Observation, create_app


class LatexOCRAction(Action):
    latex: str


class LatexOCRObservation(Observation):
    image_base64: str = ""


app = create_app(
    LatexOCREnvironment,
    LatexOCRAction,
    LatexOCRObservation,
    env_name="latex_ocr_env",
)

import requests
from urllib.parse import urljoin

from openenv.core import EnvClient

ENV_NAME = "latex_ocr_env"


class LatexOCREnv(EnvClient[LatexOCRAction, LatexOCRObservation, State]):
    def list_splits(self) -> list[str]:
        resp = requests.get(urljoin(self._http_base(), f"{ENV_NAME}/splits"), timeout=30)
        resp.raise_for_status()
        return [s["name"] for s in resp.json()]

    def num_tasks(self, split: str) -> int:
        resp = requests.post(
            urljoin(self._http_base(), f"{ENV_NAME}/num_tasks"),
            json={"split": split},
            timeout=60,
        )
        resp.raise_for_status()
        return int(resp.json()["num_tasks"])


def evaluate(url: str, model: Any) -> list[tuple[int, Any]]:
    """The loop of the guide, without the container."""
    found = []
    with LatexOCREnv(url).sync() as env:
        total = env.num_tasks("test")
        for index in range(total):
            result = env.reset(split="test", index=index)
            prediction = model(result.observation.image_base64)
            result = env.step(LatexOCRAction(latex=prediction))
            found.append((index, result.reward))
    return found
