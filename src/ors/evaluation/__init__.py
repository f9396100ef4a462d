"""Evaluations: agents play episodes, each ends in one result, and a file of results can be gone on with after a kill.

An agent is a function that is given a session of one episode (`AgentSession` where it is `async def`, else
`SyncAgentSession`) and plays it: it reads `get_prompt()` and `list_tools()`, and awaits `call_tool()` until `finished`
is true, or returns earlier to give up. What it returns is ignored; what it puts into `notes` is kept with the result.

An episode that could not be played is a failure with a kind, never a reward of 0.
"""

from __future__ import annotations

from ors.evaluation.agents import Agent, AgentError
from ors.evaluation.jobs import Job, Key, jobs_of
from ors.evaluation.playing import Limits
from ors.evaluation.results import Failure, Result
from ors.evaluation.results_file import ResultsFile, ResultsFileError
from ors.evaluation.running import run
from ors.evaluation.sessions import AgentSession, SyncAgentSession
from ors.evaluation.summary import Summary, Tally

__all__ = [
    "Agent",
    "AgentError",
    "AgentSession",
    "Failure",
    "Job",
    "Key",
    "Limits",
    "Result",
    "ResultsFile",
    "ResultsFileError",
    "Summary",
    "SyncAgentSession",
    "Tally",
    "jobs_of",
    "run",
]
