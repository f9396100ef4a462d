"""`ors splits`: the splits of environments."""

from __future__ import annotations

from ors.cli.arguments import ApiKey, AsJSON, Debug, Env, Source, examples
from ors.cli.errors import reporting

__all__ = ["HELP_END", "splits"]

HELP_END = examples("ors splits http://127.0.0.1:8080", "ors splits examples/lights_out.py --json")


def splits(source: Source, env: Env = None, api_key: ApiKey = None, json: AsJSON = False, debug: Debug = False) -> None:
    """List the splits of environments, and how many tasks they have."""
    with reporting(debug=debug):
        from ors.cli.picking import count_of, pick_environment
        from ors.cli.places import client_of, opened
        from ors.cli.showing import console, print_json, table

        with opened(source, api_key, debug=debug) as place, client_of(place) as client:
            if env is not None:
                environments = [pick_environment(client, env)]
            else:
                environments = [client.environment(name) for name in client.environments.list()]
            found = [
                {"env": one.name, "split": split.name, "type": split.type, "tasks": count_of(one, split)}
                for one in environments
                for split in one.list_splits()
            ]
        if json:
            print_json(found)
            return
        rows = [
            (one["env"], one["split"], one["type"], "endless" if one["tasks"] is None else f"{one['tasks']:,}")
            for one in found
        ]
        console().print(table(("environment", "split", "type", "tasks"), rows, right=[3]))
