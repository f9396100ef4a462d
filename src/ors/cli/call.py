"""`ors call`: one call of a tool, for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ors.cli.arguments import ApiKey, AsJSON, Debug, Env, Secrets, Source, Split, examples
from ors.cli.errors import FAILED, NOT_ALL_WELL, CommandError, reporting

if TYPE_CHECKING:
    from ors.client import Session, ToolOutput

__all__ = ["HELP_END", "call"]

HELP_END = examples(
    "ors call addition.py submit answer=727",
    "ors call http://127.0.0.1:8080 submit '{\"answer\": 727}' --split train --index 0 --json",
    'ors call addition.py submit answer=5 --task \'{"a": 2, "b": 3}\'',
)


def call(
    source: Source,
    tool: Annotated[str, typer.Argument(help="The name of the tool.", show_default=False)],
    input: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=VALUE]...",
            help="The input: by fields, or one JSON object, as it stands, as @file, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    env: Env = None,
    split: Split = None,
    index: Annotated[int, typer.Option("--index", "-i", metavar="N", min=0, help="The task of the split.")] = 0,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="JSON", help="The task itself: a JSON object, @file or -.", show_default=False),
    ] = None,
    secret: Secrets = None,
    api_key: ApiKey = None,
    json: AsJSON = False,
    debug: Debug = False,
) -> None:
    """Call one tool in a session of its own, and print what it says.

    The session is of the task at --index of --split, by default the first task of the first split. Exit code 3: the
    tool refused the call or failed on purpose; 1: the tool broke.
    """
    with reporting(debug=debug):
        from ors.cli.inputs import input_of, object_of, secrets_of
        from ors.cli.picking import pick_environment, pick_split, some_split
        from ors.cli.places import client_of, opened
        from ors.cli.signals import ending_in_order
        from ors.errors import ToolCallError, ToolFailed

        if task is not None and split is not None:
            raise CommandError("give either --task or --split, not both")
        secrets = secrets_of(secret)
        whole = object_of(task, "--task") if task is not None else None
        words = input or []
        with ending_in_order(), opened(source, api_key, debug=debug) as place, client_of(place) as client:
            environment = pick_environment(client, env)
            if whole is not None:
                session = environment.session(whole, secrets)
            else:
                chosen = pick_split(environment, split) if split else some_split(environment.list_splits())
                if chosen is None:
                    raise CommandError(f"{environment.name} has no split; give a task with --task")
                session = environment.session(None, secrets, split=chosen, index=index)
            with session:
                try:
                    output = session.call_tool(tool, input_of(words, _schema_of(session, tool)))
                except ToolCallError as exc:
                    _say_no(exc.detail, exc.reason, json)
                    raise typer.Exit(NOT_ALL_WELL) from None
                except ToolFailed as exc:
                    if not json:
                        raise
                    _say_no(exc.detail, exc.kind, json)
                    raise typer.Exit(FAILED) from None
        _show(output, json)


def _schema_of(session: Session, tool: str) -> Any:
    for spec in session.list_tools():
        if spec.name == tool:
            return spec.input_schema
    return None


def _say_no(words: str, reason: str | None, json: bool) -> None:
    from ors.cli.showing import console, plain, print_json

    if json:
        print_json({"ok": False, "error": words, "reason": reason})
    else:
        console(stderr=True).print(plain(words), soft_wrap=True)


def _show(output: ToolOutput, json: bool) -> None:
    from ors.cli.blocks import described, words_of_reward
    from ors.cli.showing import console, print_json

    if json:
        print_json({"ok": True, "output": output.model_dump()})
        return
    screen = console()
    for block in output.blocks:
        screen.print(described(block), soft_wrap=True)
    if output.reward is not None or output.finished:
        console(stderr=True).print(words_of_reward(output), soft_wrap=True)
