"""Faces: the protocols. Each is a table of routes over a host; the server assembles them into one application."""
