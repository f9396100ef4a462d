"""Whatever is asked in whatever order while connections break anywhere: each step counts once, or its loss is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client.played import Proxy
from ors.client.portal import portal
from ors.errors import SessionLost
from ors.openenv import GenericEnvClient, create_app
from ors.openenv.clients.addresses import http_base, is_local, websocket_url
from served import Served, wait_until

from .counting import Add, Counter, Total
from .plain import Plain

NUMBERS = st.integers(0, 5)
ORDERS = st.lists(
    st.one_of(
        st.tuples(st.just("step"), NUMBERS),
        st.tuples(st.just("reset"), NUMBERS),
        st.tuples(st.just("state"), st.just(0)),
        st.tuples(st.just("cut"), st.just(0)),
        st.tuples(st.just("cut at"), st.integers(1, 1500)),
        st.tuples(st.just("given up"), NUMBERS),
    ),
    max_size=12,
)
QUICK = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    served = Served([create_app(Counter, Add, Total, env_name="counter")])
    with Proxy(int(served.url.rsplit(":", 1)[1])) as made:
        yield made
    served.stop()


@pytest.fixture(scope="module")
def plain() -> Iterator[Plain]:
    with Plain() as made:
        yield made


def cut(env: GenericEnvClient) -> None:
    async def abort() -> None:
        line = env._wire and env._wire._line
        if line and (connection := line._socket._response.connection) is not None:
            connection.transport.abort()  # type: ignore[union-attr]

    portal().run(abort())


@QUICK
@given(ORDERS)
def test_with_a_server_that_keeps_sessions_nothing_is_lost_and_nothing_runs_twice(
    proxy: Proxy, order: list[tuple[str, int]]
) -> None:
    total = steps = 0
    proxy.cut = None
    with GenericEnvClient(proxy.url) as env:
        env.reset()
        for what, number in order:
            match what:
                case "step":
                    total, steps = total + number, steps + 1
                    assert env.step({"number": number}).observation["total"] == total
                case "reset":
                    total, steps = number, 0
                    assert env.reset(start=number).observation["total"] == total
                case "cut":
                    cut(env)
                case "cut at":
                    proxy.cut = number
                    cut(env)
                case "given up":
                    Counter.HOLDING.clear()
                    Counter.RELEASED.clear()
                    asked = portal().submit(env._step({"number": number, "hold": True}, {}))
                    assert Counter.HOLDING.wait(30)
                    asked.cancel()
                    Counter.RELEASED.set()
                    total, steps = total + number, steps + 1
            if what in ("state", "given up"):
                said = env.state()
                assert (said["step_count"], said["episode_id"]) == (steps, str(total))
        proxy.cut = None


@QUICK
@given(ORDERS)
def test_with_a_server_that_keeps_none_a_loss_is_told_until_there_is_a_reset(
    plain: Plain, order: list[tuple[str, int]]
) -> None:
    total: int | None = 0

    def asked(ask: Any) -> Any:
        if total is None:
            with pytest.raises(SessionLost):
                ask()
            return None
        return ask()

    with GenericEnvClient(plain.url) as env:
        env.reset()
        for what, number in order:
            match what:
                case "step":
                    result = asked(lambda number=number: env.step({"number": number}))
                    if result is not None and total is not None:
                        total += number
                        assert result.observation["total"] == total
                case "state":
                    said = asked(env.state)
                    assert said is None or said["step_count"] == total
                case "reset":
                    total = number
                    assert env.reset(start=number).observation["total"] == number
                case "cut" | "cut at":
                    line = env._wire._line  # type: ignore[union-attr]
                    cut(env)
                    wait_until(lambda line=line: line is None or line.gone is not None)
                    total = None
                case "given up" if total is not None:
                    plain.hold()
                    held = plain.held
                    step = portal().submit(env._step({"number": number, "hold": True}, {}))
                    wait_until(lambda held=held: plain.held > held)
                    step.cancel()
                    wait_until(lambda: not env._wire.connected)  # type: ignore[union-attr]
                    plain.release()
                    total = None


@given(
    st.sampled_from(["http", "https", "ws", "wss", "HTTP", ""]),
    st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?(\.[a-z]{2,5})?", fullmatch=True),
    st.one_of(st.none(), st.integers(1, 65535)),
    st.lists(st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True).filter(lambda part: part != "ws"), max_size=3),
    st.sampled_from(["", "/", "/ws", "/ws/"]),
)
def test_addresses_lead_back_to_each_other(scheme: str, host: str, port: int | None, path: list[str], end: str) -> None:
    place = host + (f":{port}" if port else "") + "".join(f"/{part}" for part in path)
    given_ = f"{scheme}://{place}{end}" if scheme else f"{place}{end}"
    base, socket = http_base(given_), websocket_url(given_)
    secure = scheme.lower() in ("https", "wss")
    assert base == f"{'https' if secure else 'http'}://{place}/"
    assert socket == f"{'wss' if secure else 'ws'}://{place}/ws"
    assert (http_base(socket), websocket_url(base)) == (base, socket)
    assert is_local(given_) == (host == "localhost")
