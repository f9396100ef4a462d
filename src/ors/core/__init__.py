"""The core: sessions and their episodes, calls that run exactly once, the order of calls, and every kind of failure.

It knows no protocol and no author's class. Faces see its ports and failures; adapters implement its ports.
"""
