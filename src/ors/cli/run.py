"""`ors run`: agents play many episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ors.cli.arguments import ApiKey, AsJSON, Debug, Secrets, Source, examples
from ors.cli.errors import FAILED, NOT_ALL_WELL, reporting

__all__ = ["HELP_END", "run"]

HELP_END = examples(
    "ors run addition.py --agent my_agent.py:play --limit 50",
    "ors run http://127.0.0.1:8080 --agent my_package.agents:play --env addition -c 64 -o test.jsonl",
    "ors run addition.py --agent my_agent.py:play --limit 100 --seed 1 --repeat 4 --json",
)


def run(
    source: Source,
    agent: Annotated[
        list[str],
        typer.Option(
            "--agent",
            "-a",
            metavar="MODULE:FUNCTION",
            help="What plays: a function that is given a session, `def` or `async def`, in a module or a file "
            "(my_agent.py:play). Can be repeated, to compare.",
            show_default=False,
        ),
    ],
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", "-e", metavar="NAME", help="The environment, by default all. Can be repeated.", show_default=False
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            "-s",
            metavar="NAME",
            help="The split, by default the one of type test, or validation.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="N", min=1, help="Tasks of each environment, by default all.", show_default=False
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", metavar="N", min=1, help="Episodes at once.")] = 16,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Play tasks picked at random with this seed instead of the first ones; agents' random numbers "
            "follow it too.",
            show_default=False,
        ),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Episodes of each task.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            dir_okay=False,
            help="A file for the results, a line of JSON for each episode. What it holds already is not played again.",
            show_default=False,
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Play the episodes again that are failures in --output.")
    ] = False,
    reward: Annotated[
        Literal["sum", "last", "max"], typer.Option("--reward", help="What the rewards of an episode count as.")
    ] = "sum",
    unpaid: Annotated[
        float | None,
        typer.Option(
            "--unpaid",
            metavar="REWARD",
            help="What an episode counts as that was played and never paid; by default it is in no mean.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        float | None,
        typer.Option(
            "--require", metavar="REWARD", help="Exit code 3 where a mean reward is below this.", show_default=False
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0.001, help="The time for an episode.", show_default=False),
    ] = None,
    call_timeout: Annotated[
        float | None,
        typer.Option("--call-timeout", metavar="SECONDS", min=0.001, help="The time for a call.", show_default=False),
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option(
            "--max-calls", metavar="N", min=1, help="Calls in an episode; then it is stopped.", show_default=False
        ),
    ] = None,
    secret: Secrets = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="FILE",
            dir_okay=False,
            help="A file for the log of a target that is served here.",
            show_default=False,
        ),
    ] = None,
    api_key: ApiKey = None,
    json: AsJSON = False,
    debug: Debug = False,
) -> None:
    """Let an agent play many episodes, and report how it did.

    An episode that cannot be played is a failure, counted by kind, and never a reward of 0. Exit code 3: there were
    failures, or a mean is below --require.
    """
    with reporting(debug=debug):
        from ors.cli.agents import load_agents
        from ors.cli.inputs import secrets_of
        from ors.cli.places import opened
        from ors.cli.run_plan import plan
        from ors.cli.running import Running
        from ors.evaluation import Limits

        agents = load_agents(agent)
        secrets = secrets_of(secret)
        with opened(source, api_key, debug=debug, log=log) as place:
            rows = plan(place, env or [], split, limit)
            running = Running(place, agents, rows, how=reward, unpaid=unpaid, seed=seed, limit=limit, repeat=repeat)
            running.open_results(output, retry_failed)
            ended_by = running.play(concurrency, Limits(timeout, max_calls), call_timeout, secrets, quiet=json)
        running.tell(json, output)
        if ended_by:
            raise typer.Exit(128 + ended_by)
        if running.gone:
            raise typer.Exit(FAILED)
        if running.report.all.failures or not running.reaches(require):
            raise typer.Exit(NOT_ALL_WELL)
