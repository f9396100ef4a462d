"""Every kind of failure has a status, and says whether a retry helps and how an agent is told."""

from __future__ import annotations

import http
import re
from pathlib import Path

import msgspec
import pytest

import ors
from ors.core.failures import KINDS, Failure, failure

ASKING = {"client", "evaluation", "conformance", "cli"}
SOURCE = Path(ors.__file__).parent
MADE = re.compile(r"\b(?:failure|Failure|RequestError)\(\s*\"([a-z_]+)\"")


def test_every_kind_that_is_made_is_known_and_every_known_one_is_made() -> None:
    # clients, and what plays and checks through them, have kinds of their own
    ours = (path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in ASKING)
    text = "\n".join(path.read_text() for path in ours)
    made = set(MADE.findall(text))
    assert made <= KINDS.keys(), made - KINDS.keys()
    unused = {kind for kind in KINDS if f'"{kind}"' not in text.replace(f'    "{kind}": Kind(', "", 1)}
    assert not unused, f"no code makes {unused}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_complete(kind: str) -> None:
    entry = KINDS[kind]
    assert 400 <= http.HTTPStatus(entry.status) < 600
    # what clients retry on their own are these; nothing else may claim that a retry helps
    assert entry.retryable == (entry.status in (429, 503))
    made = failure(kind, "words")
    assert (made.status, made.retryable, made.reason, made.ran) == (entry.status, entry.retryable, entry.reason, "no")


def test_a_failure_is_data() -> None:
    made = failure("too_many_calls", "later", retry_after=2.0)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(made), type=Failure) == made
    with pytest.raises(KeyError):
        failure("no_such_kind", "words")
    with pytest.raises(AttributeError):
        made.kind = "internal"  # type: ignore[misc]
