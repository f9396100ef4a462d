"""Packages of environments, as a hub's users have them installed."""

from __future__ import annotations

from pathlib import Path

CLIENT = '''
from {core} import Action, EnvClient, Observation, State


class {action}(Action):
    word: str = ""


class {stem}Observation(Observation):
    word: str = ""
    steps: int = 0
    pid: int = 0


class {client}(EnvClient[{action}, {stem}Observation, State]):
    """Its types say it all."""
'''


def install(
    folder: Path,
    name: str,
    *,
    module: str | None = None,
    client: str | None = None,
    action: str | None = None,
    manifest: str | None = None,
    version: str = "1.2.0",
    core: str = "ors.openenv",
) -> None:
    """Put a distribution into a folder of packages, as an installer does."""
    module = module or name.removeprefix("openenv-").replace("-", "_")
    stem = "".join(word.capitalize() for word in module.removesuffix("_env").split("_"))
    (folder / module).mkdir(parents=True)
    text = CLIENT.format(core=core, stem=stem, client=client or f"{stem}Env", action=action or f"{stem}Action")
    (folder / module / "__init__.py").write_text(f'"""The environment of {name}."""\n')
    (folder / module / "client.py").write_text(text)
    if manifest is not None:
        (folder / module / "openenv.yaml").write_text(manifest)
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{module}/__init__.py,,\n{module}/client.py,,\n{info.name}/METADATA,,\n")
