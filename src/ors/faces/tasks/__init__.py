"""The Task API, once, for every protocol that has it; what differs between them is a dialect."""

from ors.faces.tasks.face import ORS_DIALECT, Dialect, TaskFace

__all__ = ["ORS_DIALECT", "Dialect", "TaskFace"]
