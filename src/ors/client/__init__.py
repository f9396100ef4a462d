"""The client of the Open Reward Standard."""
