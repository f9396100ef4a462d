"""OpenEnv's clients, each against real servers on real sockets."""
