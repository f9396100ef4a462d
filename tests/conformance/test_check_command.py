"""`ors check` as a user runs it: findings, reports, exit codes, and nothing left behind after a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ors.conformance import probe_source, rows_of
from served import wait_until

from . import faults_discovery  # noqa: F401 - it declares the fault that is made
from .serving import ServedProbe

LIMIT_S = 100
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def served() -> Iterator[ServedProbe]:
    with ServedProbe() as server:
        yield server


def started(*words: str, **options: Any) -> subprocess.Popen[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("ORS_")}
    return subprocess.Popen(
        [sys.executable, "-m", "ors.cli", "check", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environ, "COLUMNS": "110", **options},
    )


def check(*words: str, **options: Any) -> tuple[int, str, str]:
    with started(*words, **options) as process:
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, err


def test_a_server_that_passes(served: ServedProbe, tmp_path: Path) -> None:
    junit, page = tmp_path / "report.xml", tmp_path / "report.md"
    code, out, err = check(served.url, "--only", "ORS-SPLIT", "--junit", str(junit), "--markdown", str(page))
    assert (code, err) == (0, "")
    assert "ORS-SPLIT-006" in out
    assert "conformanceprobe, conformancecounted: 9 rows pass, 0 fail, 0 are not applicable." in out
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("9", "0", "0")
    assert page.read_text("utf-8").count("| ORS-SPLIT-") == 9


def test_a_failure_shows_request_answer_and_sentence(tmp_path: Path) -> None:
    with ServedProbe() as other:
        other.mutator.faulty_for_all = "ORS-SPLIT-006: an unknown name has the type train"
        junit, page = tmp_path / "report.xml", tmp_path / "report.md"
        words = (other.url, "--only", "ORS-SPLIT", "--level", "must")
        code, out, err = check(*words, "--junit", str(junit), "--markdown", str(page))
        json_code, json_out, _ = check(*words, "--json")
    assert (code, err) == (3, "")
    shown = " ".join(out.split())
    assert "ORS-SPLIT-006 (must) in conformanceprobe: the split 'holdout' has the type 'train'" in shown
    assert "> GET /conformanceprobe/splits" in shown
    assert '< [{"name": "train", "type": "train"}' in shown
    assert "which default to type" in shown
    assert "8 rows pass, 1 fail (1 must)" in shown

    assert json_code == 3
    told = json.loads(json_out)
    assert told["counts"] == {"pass": 8, "fail": 1, "not applicable": 0}
    (failed,) = [row for row in told["rows"] if row["status"] == "fail"]
    assert failed["id"] == "ORS-SPLIT-006"
    assert failed["request"].startswith("GET /conformanceprobe/splits")
    assert "holdout" in failed["answer"]
    assert any("Custom splits" in sentence for sentence in failed["sentences"])

    (failure,) = ElementTree.parse(junit).getroot().iter("failure")
    assert failure.get("type") == "must"
    assert "GET /conformanceprobe/splits" in (failure.text or "")
    text = page.read_text("utf-8")
    assert "## ORS-SPLIT-006" in text
    assert "GET /conformanceprobe/splits" in text


def test_levels_leave_out_what_is_weaker(served: ServedProbe) -> None:
    code, out, _ = check(served.url, "--level", "must", "--json", "--env", "conformancecounted")
    assert code == 0
    report = json.loads(out)
    assert {row["level"] for row in report["rows"]} == {"must"}
    assert report["environments"] == ["conformancecounted"]
    wanted = {row.id for row in rows_of("ors") if row.check and row.level == "must"}
    assert {row["id"] for row in report["rows"]} == wanted
    probed = [row for row in report["rows"] if "it needs the probe" in row["reason"]]
    assert len(probed) > 20


def test_a_target_is_served_and_checked() -> None:
    code, out, err = check(str(EXAMPLES / "lights_out.py"), "--served")
    assert (code, err) == (0, "")
    assert "lightsout: " in out
    assert ", 0 fail" in out
    assert "more rows need the probe" in " ".join(out.split())


def test_secrets_are_used_and_shown_nowhere(tmp_path: Path) -> None:
    secret = "the-key-of-an-example"
    files = tmp_path / "report.xml", tmp_path / "report.md"
    words = (str(EXAMPLES / "sealed_answers.py"), "--served", "--junit", str(files[0]), "--markdown", str(files[1]))
    code, out, err = check(*words, "--secret", "answer_key", answer_key=secret)
    assert (code, err) == (0, "")
    # a wrong one breaks every episode: the failure is shown with its request, which had the secret
    wrong, report, _ = check(*words, "--secret", "answer_key=wrong-key-of-an-example", "--json")
    assert wrong == 3
    assert "/prompt" in report
    for text in (out, report, *(path.read_text("utf-8") for path in files)):
        assert secret not in text
        assert "wrong-key-of-an-example" not in text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["http://127.0.0.1:9"], 1, "nothing answers at http://127.0.0.1:9"),
        (["http://127.0.0.1:9", "--protocol", "openenv", "--only", "ORS-CALL"], 2, "areas are OPENENV-ABOUT"),
        (["http://127.0.0.1:9", "--only", "ORS-NOTHING"], 2, "there is no such row; areas are ORS-BLOCK"),
        (["http://127.0.0.1:9", "--only", "ORS-SPLIT-010"], 2, "nobody but the author knows what a split is for"),
        (["no_such_file.py"], 2, "there is no such file"),
        (["http://:80"], 2, "is no URL of a server"),
    ],
    ids=["nobody", "openenv", "no row", "no request", "no file", "no url"],
)
def test_what_cannot_be_done_is_said(words: list[str], code: int, said: str) -> None:
    assert (found := check(*words))[0] == code, found
    assert said in " ".join(found[2].split())
    assert "Traceback" not in found[2]


@pytest.mark.parametrize("package", ["ors", "openreward"])
def test_the_probe_is_printed(package: str) -> None:
    code, out, err = check("--probe", package)
    assert (code, err) == (0, "")
    assert out == probe_source(package)
    assert (f"from {'openreward.environments' if package == 'openreward' else 'ors'} import Environment" in out) is True
    compile(out, "probe.py", "exec")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_check_that_is_stopped_deletes_its_sessions(served: ServedProbe, number: signal.Signals) -> None:
    opened = served.status()["opened"]
    with started(served.url) as process:
        wait_until(lambda: served.status()["opened"] > opened + 1, within_s=60, what="the check opens sessions")
        begun = time.monotonic()
        process.send_signal(number)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == (1 if number == signal.SIGTERM else 130)
    assert time.monotonic() - begun < 20
    # what was on its way when the signal came is still carried out
    wait_until(lambda: served.status()["sessions"] == 0, within_s=20, what="its sessions are deleted")
