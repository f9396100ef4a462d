"""`ors serve`: environments over HTTP, from files and modules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ors.cli.errors import CommandError, reporting
from ors.cli.options import option_of, with_settings, words_for

__all__ = ["serve"]


@with_settings
def serve(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="What to serve: file.py, file.py:Class, module, module:Class, or a folder with an openenv.yaml. "
            "The first also answers at the root.",
        ),
    ],
    settings: dict[str, Any],
    host: Annotated[str, typer.Option("--host", envvar="ORS_HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            envvar="ORS_PORT",
            min=0,
            max=65535,
            help="The port; 0 takes a free one. 8080, or 8000 where every environment is OpenEnv's.",
        ),
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Listen on a public address without API keys.")] = False,
    reload: Annotated[
        bool, typer.Option("--reload", help="Start again when a Python file beside a target changes. For development.")
    ] = False,
    reload_dir: Annotated[
        list[Path] | None,
        typer.Option("--reload-dir", file_okay=False, exists=True, help="Watch this folder too. Can be repeated."),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Serve environments over HTTP until SIGTERM or Ctrl-C.

    Every setting can also be an environment variable: ORS_ and its name in capitals.
    """
    with reporting(debug=debug):
        _refuse_open_door(host, insecure, settings)
        if reload:
            flags = [flag for flag, wanted in (("--insecure", insecure), ("--debug", debug)) if wanted]
            words = [f"--host={host}", *([f"--port={port}"] if port is not None else []), *flags]
            _serve_again_and_again(targets, reload_dir or [], words, settings)
        else:
            _serve(targets, host, port, settings)


def _refuse_open_door(host: str, insecure: bool, settings: dict[str, Any]) -> None:
    from ors.server.run import is_loopback
    from ors.settings import Settings

    keys = Settings.load(**settings).keys()
    if not keys and not insecure and not is_loopback(host):
        raise CommandError(
            f"without API keys, whoever reaches {host} can list tasks with their answers and run tools; give keys "
            f"with {option_of('api_keys')}, {option_of('api_key_file')} or ORS_API_KEYS, or listen on 127.0.0.1; "
            f"--insecure listens all the same"
        )


def _serve(targets: Sequence[str], host: str, port: int | None, settings: dict[str, Any]) -> None:
    from ors.cli.targets import load_targets
    from ors.server import Server
    from ors.server.entries import Entry

    environments = load_targets(targets)
    server = Server(environments, **settings)
    if port is None:
        port = 8000 if all(Entry.of(each).openenv for each in environments) else 8080
    try:
        server.run(host=host, port=port)
    except SystemExit as exc:  # it could not start, and has said why
        raise typer.Exit(1 if exc.code else 0) from None


def _serve_again_and_again(
    targets: Sequence[str], folders: Sequence[Path], words: Sequence[str], settings: dict[str, Any]
) -> None:
    from ors.cli.reload import Reloader
    from ors.cli.targets import Target

    watched = [*(Target.parse(target).folder() for target in targets), *(folder.resolve() for folder in folders)]
    # whoever changes a file does not want to wait for the calls that still run
    settings = {"shutdown_grace": 1.0, "teardown_timeout": 5.0, **settings}
    Reloader(["serve", *words, *words_for(settings), "--", *targets], watched).run()
