"""Hosts: where sessions are found. `LocalHost` keeps them in this process, `RemoteHost` in one that it spawned."""
