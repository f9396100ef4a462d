"""A model that plays by a script, behind OpenAI's chat completions and Responses over real HTTP."""

from __future__ import annotations

import json
import math
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_QUESTION = re.compile(r"What is (\d+)\+(\d+)\?")
_ROOT = re.compile(r"Root of (\d+)\?")

Call = tuple[str, dict[str, Any]]


class ScriptedModel:
    """Asks for a hint and guesses in one message, then submits the sum: a wrong one where the first number is 3.

    Asked for a root it submits that at once.

    A context manager; `requests` holds the bodies that came, by their path.
    """

    def __init__(self) -> None:
        self.requests: dict[str, list[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with model._lock:
                    model.requests.setdefault(self.path, []).append(body)
                answer = json.dumps(_ANSWERS[self.path](body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _next_calls(conversation: Any, results: int) -> list[Call]:
    """What the model does after so many results of calls."""
    if root := _ROOT.search(json.dumps(conversation)):
        return [] if results else [("submit", {"answer": str(math.isqrt(int(root[1])))})]
    found = _QUESTION.search(json.dumps(conversation))
    assert found is not None, conversation
    first, second = int(found[1]), int(found[2])
    if results == 0:
        return [("hint", {}), ("guess", {"answer": "perhaps"})]
    if results == 2:
        return [("submit", {"answer": str(first + second + (first == 3))})]
    return []


def _chat(body: dict[str, Any]) -> dict[str, Any]:
    results = [message for message in body["messages"] if message["role"] == "tool"]
    calls = [
        {
            "id": f"call_{len(results)}_{i}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for i, (name, given) in enumerate(_next_calls(body["messages"], len(results)))
    ]
    message = {"role": "assistant", "content": None if calls else "Done."} | ({"tool_calls": calls} if calls else {})
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _respond(body: dict[str, Any]) -> dict[str, Any]:
    results = [item for item in body["input"] if item.get("type") == "function_call_output"]
    output: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "id": f"fc_{len(results)}_{i}",
            "call_id": f"call_{len(results)}_{i}",
            "name": name,
            "arguments": json.dumps(given),
            "status": "completed",
        }
        for i, (name, given) in enumerate(_next_calls(body["input"], len(results)))
    ]
    if not output:
        text = {"type": "output_text", "text": "Done.", "annotations": []}
        output = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }


_ANSWERS = {"/v1/chat/completions": _chat, "/v1/responses": _respond}
