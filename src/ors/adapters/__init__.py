"""Adapters: other people's kinds of environment → offerings of the core."""
