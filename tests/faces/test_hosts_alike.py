"""An episode is the same wherever its session lives."""

from __future__ import annotations

from .conftest import Serve
from .environments import Sums


def test_an_episode(serve: Serve) -> None:
    served = serve(Sums)
    client = served.client
    headers = {"X-Session-ID": client.post("/create_session").json()["sid"]}
    assert client.post("/create", json={"split": "train", "index": 2}, headers=headers).status_code == 200
    assert client.get("/sums/prompt", headers=headers).json()[0]["text"] == "What is 2 + 2?"
    assert '"reward":1.0' in client.post("/call", json={"name": "submit", "input": {"answer": 4}}, headers=headers).text
    assert served.status()["sessions"] == 1
    assert client.post("/delete", headers=headers).status_code == 200
    assert served.status()["sessions"] == 0


def test_servers_are_shared_unless_fresh(serve: Serve) -> None:
    assert serve(Sums) is serve(Sums)
    own = serve(Sums, fresh=True)
    assert own is not serve(Sums)
    own.stop()
    assert serve(Sums).running and not own.running
