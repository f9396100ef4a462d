"""The tasks of environment classes: what their methods and the sources that they declare say, as the port `Tasks`."""

from ors.adapters.class_tasks.offered import ClassTasks

__all__ = ["ClassTasks"]
