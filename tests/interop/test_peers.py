"""The peers' virtual environments: what is in them, and what is said when they cannot be made."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from . import peers
from .peers import PINS, ROOT, VENVS, PeerUnavailable, clean_environ, peer_python


@pytest.mark.parametrize("peer", sorted(PINS))
def test_a_peer_is_what_the_registry_has(peer: str) -> None:
    # RECORD holds the hash of every file as it was in the wheel: nothing was changed after the installation
    code = (
        "import base64, hashlib, importlib.metadata as m, sys\n"
        "files = [f for f in m.files(sys.argv[1]) if f.hash and f.suffix == '.py']\n"
        "digest = lambda f: base64.urlsafe_b64encode(hashlib.new(f.hash.mode, f.read_binary()).digest()).rstrip(b'=')\n"
        "assert len(files) > 10\n"
        "print(m.version(sys.argv[1]), sum(digest(f).decode() != f.hash.value for f in files))\n"
    )
    done = subprocess.run(
        [peer_python(peer), "-c", code, peer], capture_output=True, text=True, env=clean_environ(), check=True
    )
    assert done.stdout.split() == [PINS[peer], "0"]


def test_git_does_not_see_them() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert f"{VENVS.name}/" in ignored
    assert VENVS.parent == ROOT


def test_without_a_registry_the_error_says_what_is_needed(tmp_path: Path) -> None:
    home = tmp_path / "ors-sdk"
    # pip of a registry that nobody serves; port 9 is for discarding
    offline = clean_environ(
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_EXTRA_INDEX_URL="",
        PIP_FIND_LINKS="",
        PIP_RETRIES="0",
        PIP_NO_CACHE_DIR="1",
    )
    with pytest.raises(PeerUnavailable) as caught:
        peer_python("ors-sdk", home=home, environ=offline)

    assert "ors-sdk==0.1.0 cannot be installed" in str(caught.value)
    assert "package registry" in str(caught.value)
    assert "pip said:" in str(caught.value)
    # nothing half made is left for the next run to trip over
    assert not home.exists()


def test_only_one_at_a_time_makes_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # each thread opens the lock file for itself, as processes do
    begun, made = [], []
    another = threading.Event()

    def make(home: Path, *_: object) -> None:
        begun.append(home)
        if len(begun) > 1:
            another.set()
        # without the lock another one comes here while this one waits
        another.wait(0.3)
        made.append(home)

    monkeypatch.setattr(peers, "_make", make)
    monkeypatch.setattr(peers, "_installed", lambda *_: (PINS["ors-sdk"], sys.version_info[:2]) if made else None)
    home = tmp_path / "ors-sdk"
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: peer_python("ors-sdk", home=home), range(4)))

    assert begun == made == [home]
    assert answers == [home / "bin" / "python"] * 4
