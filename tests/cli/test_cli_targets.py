"""Targets: which environments a file or a module offers, and what is said when it offers none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_commands import addition

from ors.cli.errors import CommandError
from ors.cli.targets import Target, load_targets


@pytest.fixture(autouse=True)
def forgotten_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that a test imports stays, and every test stands in its own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path: str, text: str = "") -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def names(*targets: str) -> list[str]:
    return [cls.__name__ for cls in load_targets(targets)]


def error(*targets: str) -> str:
    with pytest.raises(CommandError) as caught:
        load_targets(targets)
    message = str(caught.value)
    assert "\n" not in message
    return message


# What is found


@pytest.mark.parametrize("target", ["sums.py", "./sums.py", "sums.py:Addition", "sums", "sums:Addition"])
def test_a_file_and_a_module(target: str) -> None:
    write("sums.py", addition())
    assert names(target) == ["Addition"]


def test_a_file_somewhere_else_under_any_name() -> None:
    write("some where/2048-game.v2.py", addition())
    assert names("some where/2048-game.v2.py") == ["Addition"]
    assert names(str(Path("some where/2048-game.v2.py").absolute()) + ":Addition") == ["Addition"]


def test_a_module_in_a_package_with_relative_imports() -> None:
    write("games/__init__.py")
    write("games/base.py", addition("Base"))
    write("games/chess.py", "from .base import Base\nclass Chess(Base):\n    pass\n")
    assert names("games.chess") == ["Chess"]
    assert names("games.chess:Chess", "games.base") == ["Chess", "Base"]


def test_a_file_finds_its_neighbours() -> None:
    write("games/helper.py", "WORD = 'hello'")
    write("games/word.py", f"import helper\n{addition('Word')}")
    assert names("games/word.py") == ["Word"]


def test_several_environments_in_the_order_of_the_file_and_of_the_targets_each_once() -> None:
    write("many.py", addition("Zebra") + addition("Ant"))
    write("one.py", addition("One"))
    assert names("many.py") == ["Zebra", "Ant"]
    assert names("one.py", "many.py:Ant", "many.py") == ["One", "Ant", "Zebra"]


def test_a_package_offers_what_its_modules_define() -> None:
    write("games/__init__.py", "from games.a import A\nfrom games.b import B\n")
    write("games/a.py", addition("A"))
    write("games/b.py", f"from games.a import A\n{addition('B')}")
    assert names("games") == ["A", "B"]
    assert names("games.b") == ["B"]


def test_what_is_only_imported_is_offered_where_nothing_else_is() -> None:
    write("elsewhere.py", addition("A"))
    write("listing.py", "from elsewhere import A\n")
    assert names("listing.py") == ["A"]


def test_all_says_what_is_offered() -> None:
    write("many.py", "__all__ = ['B', 'helper']\n" + addition("A") + addition("B") + "def helper(): ...\n")
    assert names("many.py") == ["B"]


def test_private_classes_unfinished_ones_and_bases_without_tools_are_left_out() -> None:
    write(
        "many.py",
        addition("_Hidden")
        + "class Base(Environment):\n    def get_prompt(self): return 'x'\n"
        + "class Unfinished(Environment): ...\n"
        + "class Real(Base):\n    @tool\n    def go(self) -> ToolOutput: ...\n"
        + "class Harder(Real): ...\n",
    )
    assert names("many.py") == ["Real", "Harder"]
    assert names("many.py:_Hidden") == ["_Hidden"]


def test_a_list_of_classes_and_a_class_inside_another() -> None:
    write("many.py", addition("A") + addition("B") + "ENVIRONMENTS = [B, A]\nclass Holder:\n    Inner = A\n")
    assert names("many.py:ENVIRONMENTS") == ["B", "A"]
    assert names("many.py:Holder.Inner") == ["A"]


def test_where_the_source_of_a_target_lies() -> None:
    write("games/__init__.py")
    write("games/chess.py")
    write("sums.py")
    sys.path.insert(0, str(Path.cwd()))
    assert Target.parse("games/chess.py:X").folder() == Path("games").resolve()
    assert Target.parse("games.chess:X").folder() == Path("games").resolve()
    assert Target.parse("sums").folder() == Path.cwd()
    assert Target.parse("not_there").folder() == Path.cwd()
    assert "games" not in sys.modules


# What is not


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("absent.py", "'absent.py': there is no such file; there is adition.py, sums.py"),
        ("sum.py", "'sum.py': there is no such file; do you mean 'sums.py'?"),
        ("nowhere/sums.py", "'nowhere/sums.py': there is no such folder"),
        ("notes/text.txt", "'notes/text.txt' is no Python file"),
        ("notes/", "'notes/' is a folder; name a file in it"),
        (".", "'.' is a folder; name a file in it"),
        ("./package", "serve the package by its module name: package"),
        ("my-game", "'my-game' is neither a file nor a module; a target is 'my_file.py'"),
        ("", "'' is neither a file nor a module"),
        ("sums.py:1", "'sums.py:1': after the colon stands the name of a class"),
        ("sums.py:", "'sums.py:': after the colon stands the name of a class"),
        ("absent", "'absent': there is no module 'absent' in the current folder"),
        ("sums.more", "'sums.more': there is no module 'sums.more'"),
        ("notes.deep", "there is no module 'notes.deep' in the current folder or among the installed packages; a file"),
        ("sums.py:Additon", "sums.py has no 'Additon'; do you mean 'Addition'?"),
        ("sums:Other", "module 'sums' has no 'Other'. It has: Addition"),
        ("sums.py:Addition.inner", "sums.py has no 'Addition.inner'"),
    ],
)
def test_names_that_lead_nowhere(target: str, said: str) -> None:
    write("sums.py", addition())
    write("adition.py")
    write("notes/text.txt")
    write("package/__init__.py")
    assert said in error(target)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(:", "'broken.py' cannot be imported: broken.py, line 1: SyntaxError"),
        ("x = 1\n  y = 2", "broken.py, line 2: IndentationError"),
        ("import json\n\ndef g():\n    raise ValueError('boom')\ng()", "broken.py, line 4: ValueError: boom"),
        ("import json\njson.loads('{')", "JSONDecodeError"),
        ("import not_there_at_all", "line 1: No module named 'not_there_at_all'; install what provides"),
        ("from json import nothing", "line 1: cannot import name 'nothing' from 'json'"),
        ("from .base import X", "a file that is in no package imports its neighbours by their names"),
        ("import sys\nsys.exit(3)", "ends the process when it is imported (exit code 3): broken.py, line 2: put what"),
        ("assert False", "line 1: AssertionError"),
        ("raise BaseException('odd')", "line 1: BaseException: odd"),
    ],
)
def test_files_that_cannot_be_imported(source: str, said: str) -> None:
    write("broken.py", source)
    assert said in error("broken.py")
    assert "broken" not in sys.modules
    if "relative" not in said and "neighbours" not in said:
        assert said.replace("'broken.py'", "'broken'") in error("broken")


def test_a_fault_in_a_neighbour_is_placed_there() -> None:
    write("helper.py", "\n\n1 / 0\n")
    write("sums.py", "import helper\n")
    assert "'sums.py' cannot be imported: helper.py, line 3: ZeroDivisionError" in error("sums.py")


def test_relative_imports_of_a_file_in_a_package_are_explained() -> None:
    write("top/__init__.py")
    write("top/games/__init__.py")
    write("top/games/chess.py", "from ..base import X\n")
    said = error("top/games/chess.py")
    assert f"in the folder {Path.cwd()} run `ors serve top.games.chess`" in said


def test_an_interrupt_is_nobodys_error() -> None:
    write("slow.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_targets(["slow.py"])


@pytest.mark.parametrize("name", ["json.py", "types.py"])
def test_a_file_named_like_a_loaded_module(name: str) -> None:
    write(f"games/{name}", addition())
    assert f"'games/{name}' has the name of the module '{name[:-3]}'" in error(f"games/{name}")


def test_two_files_of_one_name() -> None:
    write("a/env.py", addition("A"))
    write("b/env.py", addition("B"))
    assert "'b/env.py' has the name of the module 'env'" in error("a/env.py", "b/env.py")


NOTHING = """
import json
from ors import Environment
class Half(Environment):
    pass
class Params: ...
number = 3
empty = []
"""
FOREIGN = """
class Environment: ...
Environment.__module__ = "openreward.environments"
class Echo(Environment): ...
"""


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("", "nothing.py has no environment to serve. It has: Half is not complete: it does not define get_prompt; "
             "Params is no ors.Environment"),
        (":Half", "'Half' of nothing.py is not complete: it does not define get_prompt"),
        (":Params", "'Params' of nothing.py is a class, but no ors.Environment"),
        (":Environment", "'Environment' of nothing.py is a class, but no ors.Environment"),
        (":number", "'number' of nothing.py is of type int; name a class"),
        (":json", "'json' of nothing.py is of type module"),
        (":empty", "'empty' of nothing.py is empty"),
        (":absent", "nothing.py has no 'absent'. It has: Half"),
    ],
)  # fmt: skip
def test_modules_without_an_environment_say_what_they_have(attribute: str, said: str) -> None:
    write("nothing.py", NOTHING)
    assert said in error(f"nothing.py{attribute}")


def test_an_empty_module_and_an_instance() -> None:
    write("empty.py")
    assert "It defines no class; an environment is a subclass of ors.Environment" in error("empty.py")
    write("made.py", addition() + "env = Addition()\n")
    assert "'env' of made.py is an instance of Addition; name the class itself" in error("made.py:env")


@pytest.mark.parametrize("attribute", ["", ":Echo"])
def test_an_environment_of_another_package_is_recognised(attribute: str) -> None:
    write("echo.py", FOREIGN)
    said = error(f"echo.py{attribute}")
    assert "it is one of openreward's; import Environment and tool from ors instead" in said
