"""The two existing ORS clients, as they come from the package registry, play on our server; and the bytes it sends."""
