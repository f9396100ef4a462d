"""The connection is cut after every single byte of a call's exchange: the tool runs once, and its reward arrives."""

from __future__ import annotations

import pytest

from ors.client import ORS, Retry

from .played import Proxy, seen_of


@pytest.mark.timeout(180)
def test_a_cut_at_every_byte_of_a_call(url: str) -> None:
    retry = Retry(attempts=5, first=0.001, most=0.002)
    with Proxy(int(url.rsplit(":", 1)[1])) as proxy, ORS(proxy.url, retry=retry) as client:
        with client.environment("played").session(split="train", index=0) as session:
            # a connection that has carried nothing yet, so that the count of bytes is the call's own
            client.close()
            before = proxy.passed
            session.call_tool("add", {"name": "whole"})
            size = proxy.passed - before
            assert 300 < size < 2_000
            for cut in range(1, size):
                client.close()
                proxy.cut = cut
                connections = proxy.connections
                output = session.call_tool("add", {"name": f"cut-{cut}"})
                assert output.reward == 1.0
                assert seen_of(f"cut-{cut}") == 1, f"cut after {cut} bytes"
                assert proxy.cut is None
                assert proxy.connections <= connections + 2
            assert len(session.rewards) == size
    # where the cut came before the result was whole, there was a second connection


def test_a_cut_at_every_byte_of_a_create(url: str) -> None:
    retry = Retry(attempts=5, first=0.001, most=0.002)
    with Proxy(int(url.rsplit(":", 1)[1])) as proxy, ORS(proxy.url, retry=retry) as client:
        env = client.environment("played")
        with env.session(split="train", index=0):
            pass
        for cut in range(1, 700, 3):
            client.close()
            proxy.cut = cut
            with env.session(split="train", index=1) as session:
                assert session.call_tool("add", {"name": f"made-{cut}"}).reward == 1.0
            assert seen_of(f"made-{cut}") == 1
