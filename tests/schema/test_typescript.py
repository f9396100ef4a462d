"""The printed TypeScript, compiled with `tsc --strict`: the text's examples fit, what is wrong does not."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ors.schema import json_schema, typescript
from ors_examples import DATA, EXAMPLES

NODE = Path(__file__).resolve().parents[2] / ".venvs" / "node"
COMPILER = NODE / "node_modules" / "typescript" / "bin" / "tsc"
OPTIONS = (
    *("--strict", "--noEmit", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"),
    *("--lib", "es2022", "--skipLibCheck", "--pretty", "false"),
)


@pytest.fixture(scope="module")
def compiler() -> Path:
    """npm's `typescript`, installed when it is first needed."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed: the printed TypeScript is not compiled")
    NODE.mkdir(parents=True, exist_ok=True)
    with (NODE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not COMPILER.exists():
            command = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(NODE), "typescript@5"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
            if done.returncode != 0:
                pytest.skip(f"npm cannot install typescript: {done.stderr[-500:]}")
    return COMPILER


WRONG = """import type { Split, ToolOutput } from './ors'
export const a: Split = { name: 'x' }
export const b: ToolOutput = { blocks: [], finished: true }
// @ts-expect-error nothing is wrong here
export const c: Split = { name: 'x', type: 'test' }
export function d(value) { return value }
"""


def examples() -> str:
    """A program that gives each example of the text to its type."""
    names = sorted({example.type for example in EXAMPLES})
    lines = [f"import type {{ {', '.join(names)} }} from './ors'"]
    for index, example in enumerate(EXAMPLES):
        value = json.dumps(example.value, ensure_ascii=False)
        lines.append(f"export const example{index}: {example.type} = {value}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def complaints(compiler: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int]]:
    """The file and line of everything that the compiler complains of."""
    folder = tmp_path_factory.mktemp("typescript")
    shutil.copy(DATA / "uses.ts", folder)
    for name, text in (("ors.ts", typescript()), ("examples.ts", examples()), ("wrong.ts", WRONG)):
        (folder / name).write_text(text, "utf-8")
    command = ["node", str(compiler), *OPTIONS, "ors.ts", "uses.ts", "examples.ts", "wrong.ts"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    assert done.stderr == ""
    found = re.findall(r"^(\w+\.ts)\((\d+),\d+\): error", done.stdout, re.MULTILINE)
    # nothing but complaints that were understood, each on a line of its own or explained on indented ones
    assert len(found) == len([line for line in done.stdout.splitlines() if not line.startswith(" ")]), done.stdout
    return [(name, int(line)) for name, line in found]


def test_every_definition_is_exported_with_its_description() -> None:
    text = typescript()
    exported = re.findall(r"^(?:/\*\* .+ \*/|.* \*/)\nexport (?:type|interface) (\w+)", text, re.MULTILINE)
    assert exported == list(json_schema()["definitions"])


def test_what_may_be_missing_may_be_null() -> None:
    optional = re.findall(r"^  \w+\?: (.+)$", typescript(), re.MULTILINE)
    assert len(optional) >= 14
    assert all(kind.endswith(" | null") for kind in optional)


def test_it_compiles(complaints: list[tuple[str, int]]) -> None:
    assert [line for name, line in complaints if name == "ors.ts"] == []


def test_its_uses_compile_and_only_the_right_ones(complaints: list[tuple[str, int]]) -> None:
    """`@ts-expect-error` makes the compiler complain where there is no error, too."""
    assert [line for name, line in complaints if name == "uses.ts"] == []


def test_the_examples_of_the_text_fit_their_types(complaints: list[tuple[str, int]]) -> None:
    assert [line for name, line in complaints if name == "examples.ts"] == []


def test_the_compiler_finds_what_does_not_fit(complaints: list[tuple[str, int]]) -> None:
    assert [line for name, line in complaints if name == "wrong.ts"] == [2, 4, 6]
