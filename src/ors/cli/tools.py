"""`ors tools`: the tools of environments, for people and in the formats of model providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ors.cli.arguments import ApiKey, AsJSON, Debug, Env, Source, Split, examples
from ors.cli.errors import CommandError, reporting

if TYPE_CHECKING:
    from ors.client import ToolSpec

__all__ = ["HELP_END", "tools"]

HELP_END = examples(
    "ors tools addition.py",
    "ors tools http://127.0.0.1:8080 --env addition --format anthropic",
    "ors tools addition.py --split train --index 0 --json",
)

# the formats of `ors.client.formats`, written out so that the help need not load it
Format = Literal["openai", "openai-chat", "anthropic", "google", "google-json", "openrouter", "mcp"]


def tools(
    source: Source,
    env: Env = None,
    split: Split = None,
    index: Annotated[
        int | None,
        typer.Option(
            "--index", "-i", metavar="N", min=0, help="With --split: the tools of this task, which may have more."
        ),
    ] = None,
    format: Annotated[
        Format | None, typer.Option("--format", "-f", help="Print them as JSON for this provider.", show_default=False)
    ] = None,
    api_key: ApiKey = None,
    json: AsJSON = False,
    debug: Debug = False,
) -> None:
    """List tools, also in the formats of model providers."""
    with reporting(debug=debug):
        from ors.cli.picking import pick_environment, pick_split
        from ors.cli.places import client_of, opened
        from ors.cli.showing import print_json

        if split is not None and index is None:
            raise CommandError("--split goes with --index: they name the task whose tools are listed")
        with opened(source, api_key, debug=debug) as place, client_of(place) as client:
            if env is None and index is None and not json and format is None:
                for name in client.environments.list():
                    one = client.environment(name)
                    _print(name, one.list_tools(), one.terminal_tool())
                return
            environment = pick_environment(client, env)
            if index is None:
                found, terminal = environment.list_tools(), environment.terminal_tool()
            else:
                with environment.session(split=pick_split(environment, split), index=index) as session:
                    found, terminal = session.list_tools(), session.terminal_tool()
        if format is not None:
            print_json(_converted(found, format))
        elif json:
            print_json([tool.model_dump() for tool in found])
        else:
            _print(environment.name, found, terminal)


def _converted(found: list[ToolSpec], format: Format) -> list[dict[str, Any]]:
    from ors.client.formats import FormatError, convert_tools

    try:
        return convert_tools(found, format)
    except FormatError as exc:
        raise CommandError(str(exc)) from exc


def _print(name: str, found: list[ToolSpec], terminal: Any) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from ors.cli.fields import Field
    from ors.cli.showing import console, plain, table

    screen = console()
    screen.print(Text(name, "bold"))
    for tool in found:
        screen.print(Padding(Text.assemble((tool.name, "cyan"), f"  {plain(tool.description)}"), (1, 0, 0, 2)))
        fields = Field.all_of(tool.input_schema)
        if fields is None:
            screen.print(Padding(Text("takes a JSON object; --json shows its schema", "dim"), (0, 0, 0, 4)))
        elif fields:
            rows = [(("" if field.required else "(") + field.name + ("" if field.required else ")"),
                     field.told, field.description) for field in fields]  # fmt: skip
            screen.print(Padding(table(("parameter", "takes", "what it is"), rows), (0, 0, 0, 4)))
    if terminal is not None:
        said = f"  (takes the agent's final message)  {plain(terminal.description)}"
        screen.print(Padding(Text.assemble((terminal.name, "cyan"), said), (1, 0, 0, 2)))
    screen.print()
