"""`ors envs`: the environments of a server."""

from __future__ import annotations

from typing import Any

from ors.cli.arguments import ApiKey, AsJSON, Debug, Source, examples
from ors.cli.errors import reporting

__all__ = ["HELP_END", "envs"]

HELP_END = examples("ors envs http://127.0.0.1:8080", "ors envs addition.py --json")


def envs(source: Source, api_key: ApiKey = None, json: AsJSON = False, debug: Debug = False) -> None:
    """List the environments of a server.

    The first also answers at the server's root.
    """
    with reporting(debug=debug):
        from ors.cli.picking import count_of
        from ors.cli.places import client_of, opened
        from ors.cli.showing import console, print_json, table

        found: list[dict[str, Any]] = []
        with opened(source, api_key, debug=debug) as place, client_of(place) as client:
            for name in client.environments.list():
                environment = client.environment(name)
                splits = [
                    {"name": split.name, "type": split.type, "tasks": count_of(environment, split)}
                    for split in environment.list_splits()
                ]
                tools = [tool.name for tool in environment.list_tools()]
                terminal = environment.terminal_tool()
                found.append(
                    {
                        "name": name,
                        "splits": splits,
                        "tools": tools,
                        "terminal_tool": terminal.name if terminal else None,
                    }
                )
        if json:
            print_json(found)
            return
        rows = [
            (
                one["name"],
                ", ".join(f"{split['name']} ({_counted(split['tasks'])})" for split in one["splits"]),
                ", ".join([*one["tools"], *filter(None, [one["terminal_tool"]])]),
            )
            for one in found
        ]
        console().print(table(("environment", "splits (tasks)", "tools"), rows))


def _counted(count: int | None) -> str:
    return "endless" if count is None else f"{count:,}"
