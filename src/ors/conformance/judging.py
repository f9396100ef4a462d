"""How checks say what they found: `Failed` and `NotApplicable`, and what many of them ask of an answer."""

from __future__ import annotations

from typing import Any

from ors.conformance.events import Stream, read_stream
from ors.conformance.wire import Answer, BadJSON, strict_json

__all__ = ["Call", "Failed", "NotApplicable", "answered", "array", "object_of", "parsed", "refused", "require"]


class Failed(Exception):
    """The server does not do what the row says; `answer` shows it."""

    def __init__(self, message: str, answer: Answer | None = None) -> None:
        super().__init__(message)
        self.answer = answer


class NotApplicable(Exception):
    """Whether the server does what the row says cannot be seen here, and why."""


def require(holds: Any, message: str, answer: Answer | None) -> None:
    """Raise Failed with the message unless something holds."""
    if not holds:
        raise Failed(message, answer)


def answered(answer: Answer, status: int = 200) -> Answer:
    """The answer, which must be whole and have this status."""
    if answer.problem is not None:
        raise Failed(answer.problem, answer)
    require(answer.status == status, f"the status is {answer.status}, not {status}", answer)
    return answer


def refused(answer: Answer, *statuses: int) -> None:
    """The request must be refused: with one of the statuses, or with any from 400 to 499."""
    if answer.problem is not None:
        raise Failed(answer.problem, answer)
    if statuses:
        wanted = " or ".join(str(status) for status in statuses)
        require(answer.status in statuses, f"the status is {answer.status}, not {wanted}", answer)
    else:
        require(400 <= answer.status < 500, f"the status is {answer.status}, not one of 400 to 499", answer)


def parsed(answer: Answer) -> Any:
    """The JSON of an answer that must be 200."""
    answered(answer)
    try:
        return answer.json()
    except BadJSON as exc:
        raise Failed(f"the body is not JSON: {exc}", answer) from None


def object_of(answer: Answer, *keys: str) -> dict[str, Any]:
    """The JSON object of an answer, which must have these keys."""
    value = parsed(answer)
    require(isinstance(value, dict), "the body is no JSON object", answer)
    for key in keys:
        require(key in value, f"the key {key!r} is missing", answer)
    found: dict[str, Any] = value
    return found


def array(answer: Answer, key: str | None = None) -> list[Any]:
    """The JSON array of an answer, or the one under a key of its object."""
    value = parsed(answer) if key is None else object_of(answer, key)[key]
    require(
        isinstance(value, list), "the body is no JSON array" if key is None else f"{key!r} is no JSON array", answer
    )
    found: list[Any] = value
    return found


class Call:
    """The answer to a call of a tool, read as far as it can be read."""

    def __init__(self, answer: Answer, name: str) -> None:
        self.answer = answer
        self.name = name
        streams = answer.status == 200 and answer.media_type == "text/event-stream"
        self.stream: Stream | None = read_stream(answer) if streams else None

    @property
    def id(self) -> str | None:
        """The id by which the server says that the call can be fetched again."""
        event = self.stream.first("task_id") if self.stream else None
        return event.text.strip() if event else None

    def events(self) -> Stream:
        """The stream. Raises Failed where the answer is none."""
        answered(self.answer)
        require(
            self.stream is not None,
            f"the content type is {self.answer.header('content-type')!r}, not text/event-stream",
            self.answer,
        )
        assert self.stream is not None
        return self.stream

    def result(self) -> Any:
        """The JSON of the `end` event and the pieces before it. Raises Failed."""
        stream = self.events()
        if error := stream.first("error"):
            raise Failed(f"the call ended in an error event: {error.text[:200]!r}", self.answer)
        require(stream.first("end") is not None, "the stream has no `end` event", self.answer)
        text = "".join(event.text for event in stream.named("chunk", "end"))
        try:
            return strict_json(text)
        except BadJSON as exc:
            raise Failed(f"the data of the `end` event is not JSON: {exc}", self.answer) from None

    def output(self) -> dict[str, Any]:
        """The ToolOutput of a call that must succeed. Raises Failed."""
        result = self.result()
        require(isinstance(result, dict), "the result is no JSON object", self.answer)
        require(result.get("ok") is True, f"the call did not succeed: {str(result)[:200]}", self.answer)
        require(isinstance(result.get("output"), dict), "the result has no `output` object", self.answer)
        output: dict[str, Any] = result["output"]
        return output

    def text(self) -> str:
        """The text of the first block of a call that must succeed. Raises Failed."""
        blocks = self.output().get("blocks")
        block = blocks[0] if isinstance(blocks, list) and blocks else None
        require(
            isinstance(block, dict) and isinstance(block.get("text"), str), "the first block holds no text", self.answer
        )
        assert isinstance(block, dict)
        text: str = block["text"]
        return text

    @property
    def succeeded(self) -> bool:
        """Whether the tool ran and gave an output."""
        try:
            self.output()
        except Failed:
            return False
        return True

    def must_not_succeed(self, why: str) -> None:
        """The call must be refused: by a 4xx, `ok: false` or an `error` event. Raises Failed."""
        answer = self.answer
        if answer.problem is not None:
            raise Failed(answer.problem, answer)
        if self.stream is None:
            require(400 <= answer.status < 500, f"the status is {answer.status}; {why}", answer)
            return
        if self.stream.first("error") is not None:
            return
        result = self.result()
        refused = isinstance(result, dict) and result.get("ok") is False
        require(refused, f"the call was not refused; {why}", answer)
