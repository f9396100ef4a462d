"""Reading a clock: a prompt with an image in it.

Every minute of twelve hours is a task. A fixed shuffle deals them to the splits, so none is in both.
"""

from __future__ import annotations

import math
import random
from typing import Any

from PIL import Image, ImageDraw
from pydantic import BaseModel, Field

from ors import Environment, ImageBlock, Server, Split, TextBlock, ToolOutput, tool

MINUTES = random.Random("clock").sample(range(12 * 60), 12 * 60)
TASKS = {"train": MINUTES[:600], "test": MINUTES[600:]}
SIZE = 256


def draw_clock(minute: int) -> Image.Image:
    """Draw a clock face that shows a minute of the twelve hours."""
    scale = 4  # drawn four times as large and shrunk, which smooths the edges
    image = Image.new("RGB", (SIZE * scale, SIZE * scale), "white")
    pen = ImageDraw.Draw(image)
    centre = SIZE * scale / 2

    def point(turn: float, radius: float) -> tuple[float, float]:
        angle = 2 * math.pi * turn
        return centre + radius * centre * math.sin(angle), centre - radius * centre * math.cos(angle)

    pen.circle((centre, centre), 0.95 * centre, outline="black", width=12)
    for hour in range(12):
        pen.line([point(hour / 12, 0.82), point(hour / 12, 0.92)], fill="black", width=12 if hour % 3 else 28)
    pen.line([(centre, centre), point(minute / 720, 0.5)], fill="black", width=32)
    pen.line([(centre, centre), point(minute / 60, 0.8)], fill="firebrick", width=16)
    return image.resize((SIZE, SIZE), Image.Resampling.LANCZOS)


class Time(BaseModel):
    """A time as a clock with hands shows it."""

    hour: int = Field(ge=1, le=12)
    minute: int = Field(ge=0, le=59)


class ClockReading(Environment):
    """A clock with hands, to be read to the minute."""

    @classmethod
    def list_splits(cls) -> list[Split]:
        return [Split(name="train", type="train"), Split(name="test", type="test")]

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        # The time is the answer, so a task names its place in the split and not the time.
        return [{"split": split, "index": index} for index in range(len(TASKS[split]))]

    def setup(self) -> None:
        self.minute = TASKS[self.task_spec["split"]][self.task_spec["index"]]

    def get_prompt(self) -> list[TextBlock | ImageBlock]:
        question = TextBlock(text="What time does this clock show? The short black hand is the hour hand.")
        return [question, ImageBlock.from_image(draw_clock(self.minute))]

    @tool
    def answer(self, time: Time) -> ToolOutput:
        """Say what time the clock shows; there is one try."""
        apart = abs(time.hour % 12 * 60 + time.minute - self.minute)
        apart = min(apart, 720 - apart)  # five to twelve and five past are ten minutes apart
        reward = 1.0 if apart == 0 else 0.5 if apart <= 2 else 0.0
        return ToolOutput(blocks=[TextBlock(text=f"{apart} minutes off.")], reward=reward, finished=True)


if __name__ == "__main__":
    Server([ClockReading]).run(host="127.0.0.1", port=8080)
