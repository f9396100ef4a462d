"""The web navigation task of the standard's text, in a web of two pages."""

from ors import Environment, Server, ToolError, ToolOutput, tool
from ors.tasks import InMemory

TASK = {"task_id": "find_price", "goal": "Find the price of iPhone 15", "start_url": "https://example.com"}
TASK["success_criteria"] = "Price found and extracted correctly"
PAGES = {"https://example.com": "A shop. Phones: https://example.com/phones"}
PAGES["https://example.com/phones"] = "iPhone 14: $699\niPhone 15: $799"


class WebNavigation(Environment):
    tasks = InMemory({"train": [TASK]}, id="task_id")

    def get_prompt(self) -> str:
        return f"{self.task_spec['goal']}. Start at {self.task_spec['start_url']}."

    @tool
    def visit(self, url: str) -> ToolOutput:
        """Read a page."""
        if url not in PAGES:
            raise ToolError(f"there is no page {url}")
        return ToolOutput(blocks=PAGES[url])

    @tool
    def answer(self, price: str) -> ToolOutput:
        """Say the price."""
        return ToolOutput(blocks="Noted.", reward=float(price.strip(" $") == "799"), finished=True)


if __name__ == "__main__":
    Server([WebNavigation]).run(host="127.0.0.1", port=8080)
