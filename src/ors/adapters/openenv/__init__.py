"""The parts of the adapter for OpenEnv environments; its door is `ors.adapters.openenv_environment`.

Environments are known by what they have, not by whose class they inherit from, so that those of the `openenv` package
are served like our own. Nothing here imports either.
"""
